//! Accounts do not see each other, and nobody sees the machine (design §1).

use std::{fs, os::unix::fs::symlink};

use crate::daemon;

#[test]
fn two_accounts_on_one_worker_have_two_worlds() {
    let Some(daemon) = daemon("isolation") else { return };
    daemon.put("alice", "alices", b"a");
    daemon.put("bob", "bobs", b"b");
    let (mut alice, mut bob) = (daemon.login("alice"), daemon.login("bob"));
    assert_eq!(alice.list("NLST"), ["alices"]);
    assert_eq!(bob.list("NLST"), ["bobs"]);
    for path in ["../bob/bobs", "/../bob/bobs", "..//..//bob/bobs", "/homes/bob/bobs"] {
        assert!(alice.try_fetch(format!("RETR {path}")).is_err(), "{path}");
        assert!(!alice.store(format!("STOR {path}"), b"stolen").is(2), "{path}");
        alice.refused(format!("DELE {path}"));
    }
    let absolute = daemon.home("bob", "bobs");
    assert!(alice.try_fetch(format!("RETR {}", absolute.display())).is_err());
    assert_eq!(fs::read(absolute).expect("bob's file"), b"b");
}

#[test]
fn links_out_of_the_root_lead_nowhere() {
    let Some(daemon) = daemon("links") else { return };
    daemon.mkdir("alice", "data");
    daemon.put("alice", "data/f", b"inside");
    daemon.put("bob", "bobs", b"b");
    let home = daemon.site.account("alice").home.clone();
    for (name, target) in [
        ("out", "/etc".to_owned()),
        ("in", "data".to_owned()),
        ("up", "../..".to_owned()),
        ("abs", "/data".to_owned()),
        ("bob", daemon.site.account("bob").home.display().to_string()),
        ("proc", "/proc/self".to_owned()),
        ("passwd", "/etc/passwd".to_owned()),
        ("loop", "loop".to_owned()),
    ] {
        symlink(target, home.join(name)).expect("symlink");
    }
    let mut client = daemon.login("alice");
    for path in
        ["out/passwd", "up/bob/bobs", "bob/bobs", "proc/status", "proc/exe", "passwd", "loop", "up/../etc/passwd"]
    {
        assert!(client.try_fetch(format!("RETR {path}")).is_err(), "{path}");
        client.refused(format!("SIZE {path}"));
    }
    for path in ["out/x", "up/x", "bob/x", "passwd"] {
        client.store(format!("STOR {path}"), b"x");
        client.ask(format!("MKD {path}d"));
    }
    assert!(!std::path::Path::new("/etc/x").exists() && !daemon.home("bob", "x").exists());
    assert!(fs::read("/etc/passwd").expect("passwd").len() > 10);
    assert_eq!(client.fetch("RETR in/f"), b"inside");
    // A target that begins with / starts at the account's root.
    if let Ok(bytes) = client.try_fetch("RETR abs/f") {
        assert_eq!(bytes, b"inside");
    }
}

#[test]
fn a_file_of_another_uid_is_not_readable_even_inside_the_root() {
    let Some(daemon) = daemon("uids") else { return };
    let file = daemon.put("alice", "roots", b"secret");
    e2e::site::give(&file, 0);
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("chmod");
    let mut client = daemon.login("alice");
    let refused = client.try_fetch("RETR roots").expect_err("the kernel says no");
    assert_eq!(refused.code, 550);
    assert!(!client.store("APPE roots", b"x").is(2));
    client.refused("SITE CHMOD 777 roots");
    assert_eq!(fs::read(&file).expect("read"), b"secret");
}

#[test]
fn sessions_of_one_account_share_a_broker_and_the_last_one_ends_it() {
    let Some(daemon) = daemon("brokers") else { return };
    assert_eq!(daemon.brokers().len(), 0);
    let mut first = daemon.login("alice");
    let second = daemon.login("alice");
    let bob = daemon.login("bob");
    assert_eq!(daemon.brokers().len(), 2, "one broker an account");
    drop((second, bob));
    e2e::until("bob's broker has ended", || (daemon.brokers().len() == 1).then_some(()));
    first.in_step();
    assert_eq!(first.list("LIST"), [""; 0]);
}

#[test]
fn clients_that_come_one_by_one_go_round_the_workers() {
    let Some(daemon) = daemon("balance") else { return };
    let come = || {
        // A worker that is busy leaves clients to the other one: here both wait.
        let waits = |w: &e2e::procs::Process| w.status().get("State").is_some_and(|s| s.starts_with('S'));
        e2e::until("both workers wait", || daemon.workers().iter().all(waits).then_some(()));
        daemon.login("alice")
    };
    let clients: Vec<_> = (0..20).map(|_| come()).collect();
    for worker in daemon.workers() {
        let share = clients.iter().filter(|c| daemon.worker_of(c) == worker).count();
        assert!(share >= 5, "one of two workers has {share} of 20 clients");
    }
}
