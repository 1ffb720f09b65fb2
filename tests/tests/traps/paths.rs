//! Confinement and renaming (RFC 3659 6; RFC 959 4.1.3 and 5.4; the class of CVE-2023-24042).

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::daemon;

#[test]
fn t18_the_root_is_its_own_parent_and_a_sibling_is_never_reached() {
    let Some(daemon) = daemon("T18") else { return };
    let sibling = daemon.site.dir.join("homes").join("alice-private");
    fs::create_dir(&sibling).expect("mkdir");
    fs::write(sibling.join("s"), b"secret").expect("write");
    let mut client = daemon.login("alice");
    for line in ["CWD ..", "CWD ../../..", "CWD \\..", "CWD /../.."] {
        client.ask(line);
        assert_eq!(client.pwd(), b"/", "{line}");
    }
    for path in ["../alice-private/s", "/../alice-private/s", "..//..//alice-private//s", "/./../alice-private/s"] {
        assert!(client.try_fetch(format!("RETR {path}")).is_err(), "{path}");
        client.store(format!("STOR {path}"), b"x");
        client.refused(format!("SIZE {path}"));
    }
    client.store("STOR ..//..//x", b"x");
    assert!(!client.list("LIST ..").iter().any(|l| l.contains("alice-private")));
    assert_eq!(fs::read(sibling.join("s")).expect("read"), b"secret");
    assert!(!daemon.site.dir.join("x").exists() && !daemon.site.dir.join("homes/x").exists());
}

#[test]
fn t19_links_in_the_middle_of_a_path_lead_nowhere_outside() {
    let Some(daemon) = daemon("T19") else { return };
    daemon.mkdir("alice", "data");
    daemon.put("alice", "data/f", b"inside");
    let home = daemon.site.account("alice").home.clone();
    for (name, target) in [("out", "/etc"), ("in", "./data"), ("up", "../.."), ("abs", "/data")] {
        symlink(target, home.join(name)).expect("symlink");
    }
    let mut client = daemon.login("alice");
    assert!(client.try_fetch("RETR out/passwd").is_err());
    assert!(!client.ask("CWD out").is(2) || client.list("NLST").is_empty());
    client.expect("CWD /", &[250]);
    client.store("STOR out/caisson-e2e", b"x");
    client.ask("MKD up/caisson-e2e");
    assert_eq!(client.expect("RNFR in/f", &[350]).code, 350);
    client.refused("RNTO out/f");
    assert_eq!(client.fetch("RETR in/f"), b"inside");
    if let Ok(bytes) = client.try_fetch("RETR abs/f") {
        assert_eq!(bytes, b"inside");
    }
    assert!(!Path::new("/etc/caisson-e2e").exists() && !Path::new("/etc/f").exists());
    assert!(!daemon.site.dir.join("caisson-e2e").exists());
}

#[test]
fn t19_swapping_a_directory_for_a_link_wins_no_race() {
    let Some(daemon) = daemon("T19, racing") else { return };
    let home = daemon.site.account("alice").home.clone();
    fs::create_dir(home.join("real")).expect("mkdir");
    fs::write(home.join("real/passwd"), b"inside").expect("write");
    symlink("real", home.join("data")).expect("symlink");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for target in ["/etc", "real", "../../../../etc", "real"].iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                symlink(target, home.join("next")).expect("symlink");
                fs::rename(home.join("next"), home.join("data")).expect("rename");
            }
        });
        let mut client = daemon.login("alice");
        let mut whole = 0;
        for _ in 0..2000 {
            if let Ok(bytes) = client.try_fetch("RETR data/passwd") {
                assert_eq!(bytes, b"inside");
                whole += 1;
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(whole > 0);
    });
}

#[test]
fn t20_rnto_renames_what_the_command_before_it_named() {
    let Some(daemon) = daemon("T20") else { return };
    let at = |name: &str| fs::read(daemon.home("alice", name)).ok();
    daemon.put("alice", "a", b"a");
    daemon.put("alice", "c", b"c");
    let mut client = daemon.connect();
    client.expect("RNTO x", &[530, 503]);
    client.login("alice", daemon.site.account("alice").password);
    client.expect("RNFR a", &[350]);
    client.expect("RNFR missing", &[550]);
    client.expect("RNTO b", &[503]);
    client.expect("RNFR a", &[350]);
    client.expect("RNFR c", &[350]);
    client.expect("RNTO d", &[250]);
    assert_eq!((at("a"), at("c"), at("d")), (Some(b"a".to_vec()), None, Some(b"c".to_vec())));
    client.expect("RNTO e", &[503]);
    client.expect("RNFR a", &[350]);
    client.refused("RNTO /no/dir/x");
    client.expect("RNTO f", &[503]);
    assert_eq!(at("a"), Some(b"a".to_vec()));
    client.expect("RNFR a", &[350]);
    client.expect("NOOP", &[200]);
    let reply = client.expect("RNTO b", &[503, 250]);
    assert_eq!(at("b").is_some(), reply.code == 250);
    client.in_step();
}
