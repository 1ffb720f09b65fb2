//! The permissions of caisson-users(5), each alone: what it allows works, everything else is refused.

use std::fs;

use e2e::{Daemon, Site, root_or_skip, site::EVERY_PERMISSION};

/// Something to try: what it is called, which permissions it takes, and whether it was done.
type Act = (&'static str, &'static [&'static str], fn(&mut e2e::ftp::Client) -> bool);

const ACTS: [Act; 16] = [
    ("download", &["read"], |c| c.try_fetch("RETR file").is_ok()),
    ("make a file", &["write"], |c| c.store("STOR new", b"x").is(2)),
    ("replace a file", &["write", "overwrite"], |c| c.store("STOR file", b"x").is(2)),
    ("list", &["list"], |c| c.try_fetch("LIST").is_ok()),
    ("delete", &["delete"], |c| c.ask("DELE file").is(2)),
    ("rename", &["rename"], |c| c.ask("RNFR file").code == 350 && c.ask("RNTO renamed").is(2)),
    ("make a directory", &["mkdir"], |c| c.ask("MKD newdir").is(2)),
    ("remove a directory", &["rmdir"], |c| c.ask("RMD dir").is(2)),
    ("change mode", &["chmod"], |c| c.ask("SITE CHMOD 640 file").is(2)),
    ("change time", &["times"], |c| c.ask("MFMT 20200101000000 file").is(2)),
    ("change both times", &["times"], |c| c.ask("SITE UTIME 202001010000 file").is(2)),
    ("change facts", &["times", "chmod"], |c| c.ask("MFF Modify=20200101000000;UNIX.mode=640; file").is(2)),
    ("sum", &["read"], |c| c.ask("XMD5 file").is(2)),
    ("copy", &["read", "write"], |c| c.ask("SITE CPFR file").code == 350 && c.ask("SITE CPTO new").is(2)),
    ("make a link", &["write", "rename"], |c| c.ask("SITE SYMLINK file new").is(2)),
    ("ask for space", &["write"], |c| c.ask("AVBL").is(2)),
];

#[test]
fn each_permission_allows_its_operation_and_no_other() {
    if !root_or_skip("permissions") {
        return;
    }
    let sets: Vec<Vec<&'static str>> = std::iter::once(Vec::new())
        .chain(EVERY_PERMISSION.iter().map(|p| vec![*p]))
        .chain([vec!["write", "overwrite"], vec!["read", "write"], vec!["write", "rename"], EVERY_PERMISSION.to_vec()])
        .collect();
    let mut site = Site::new();
    for (number, set) in sets.iter().enumerate() {
        site.add_account(&format!("user{number}"), 61_820 + u32::try_from(number).expect("few")).permissions =
            Some(set.clone());
    }
    let daemon = Daemon::start(site);
    for (number, set) in sets.iter().enumerate() {
        let name = format!("user{number}");
        for (act, needed, run) in ACTS {
            furnish(&daemon, &name);
            let mut client = daemon.login(&name);
            let expected = needed.iter().all(|p| set.contains(p));
            assert_eq!(run(&mut client), expected, "{act} with {set:?}");
            client.in_step();
            if !expected {
                assert_eq!(
                    fs::read(daemon.home(&name, "file")).expect("still there"),
                    b"content",
                    "{act} with {set:?}"
                );
            }
        }
    }
}

/// Makes the home of `name` as every act expects it.
fn furnish(daemon: &Daemon, name: &str) {
    for left in ["new", "renamed", "file"] {
        let _ = fs::remove_file(daemon.home(name, left));
    }
    for left in ["newdir", "dir"] {
        let _ = fs::remove_dir(daemon.home(name, left));
    }
    daemon.put(name, "file", b"content");
    daemon.mkdir(name, "dir");
}

#[test]
fn write_without_overwrite_keeps_what_is_there_whatever_the_verb() {
    if !root_or_skip("overwrite") {
        return;
    }
    let mut site = Site::new();
    site.account_mut("alice").permissions = Some(vec!["read", "write", "list", "rename"]);
    let daemon = Daemon::start(site);
    daemon.put("alice", "old", b"precious");
    daemon.put("alice", "other", b"other");
    let mut client = daemon.login("alice");
    assert!(!client.store("STOR old", b"x").is(2));
    assert!(!client.store("APPE old", b"x").is(2));
    client.expect("REST 4", &[350]);
    assert!(!client.store("STOR old", b"x").is(2));
    client.expect("RNFR other", &[350]);
    client.refused("RNTO old");
    assert_eq!(fs::read(daemon.home("alice", "old")).expect("read"), b"precious");
    client.stored("STOR new", b"x");
}
