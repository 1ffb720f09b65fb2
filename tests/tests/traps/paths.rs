//! Confinement and renaming (RFC 3659 6; RFC 959 4.1.3 and 5.4; the class of CVE-2023-24042).

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use e2e::{Daemon, ftp::Client};

use crate::daemon;

/// Makes a directory outside, with a file in it, that nothing but confinement keeps the account of alice from.
fn open_to_all(daemon: &Daemon, directory: &Path) {
    fs::create_dir(directory).expect("mkdir");
    fs::write(directory.join("s"), b"secret").expect("write");
    for (path, mode) in [(directory.to_path_buf(), 0o777), (directory.join("s"), 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    }
    let uid = daemon.site.account("alice").uid;
    let mut by_hand = Command::new("sh");
    by_hand.args(["-ec", "cd \"$0\"; echo x >>s; printf secret >s; mkdir d; rmdir d"]).arg(directory);
    assert!(by_hand.uid(uid).gid(uid).status().expect("sh").success(), "plain permissions let alice write");
}

/// Checks that nobody has touched it.
fn untouched(directory: &Path) {
    let names: Vec<_> = fs::read_dir(directory).expect("list").map(|entry| entry.expect("list").file_name()).collect();
    assert_eq!(names, ["s"], "{directory:?}");
    assert_eq!(fs::read(directory.join("s")).expect("read"), b"secret");
}

/// Tries every way to write at a path of a directory outside, which holds `s`.
fn write_at(client: &mut Client, outside: &str) {
    for verb in ["STOR", "APPE", "STOU"] {
        client.store(format!("{verb} {outside}/s"), b"x");
        client.store(format!("{verb} {outside}/new"), b"x");
    }
    for line in
        ["MKD OUT/new", "DELE OUT/s", "MFMT 20200102030405 OUT/s", "SITE CHMOD 600 OUT/s", "SITE SYMLINK f OUT/l"]
    {
        client.ask(line.replace("OUT", outside));
    }
    client.stored("STOR mine", b"mine");
    for (from, to) in
        [("RNFR mine", "RNTO OUT/new"), ("SITE CPFR mine", "SITE CPTO OUT/new"), ("RNFR OUT/s", "RNTO got")]
    {
        if client.ask(from.replace("OUT", outside)).code == 350 {
            client.ask(to.replace("OUT", outside));
        }
    }
    client.in_step();
}

#[test]
fn t18_the_root_is_its_own_parent_and_a_sibling_is_never_reached() {
    let Some(daemon) = daemon("T18") else { return };
    let sibling = daemon.site.dir.join("homes").join("alice-private");
    open_to_all(&daemon, &sibling);
    let mut client = daemon.login("alice");
    for line in ["CWD ..", "CWD ../../..", "CWD \\..", "CWD /../.."] {
        client.ask(line);
        assert_eq!(client.pwd(), b"/", "{line}");
    }
    client.expect("CWD /", &[250]);
    for path in ["../alice-private", "/../alice-private", "..//..//alice-private/", "/./../alice-private"] {
        assert!(client.try_fetch(format!("RETR {path}/s")).is_err(), "{path}");
        client.refused(format!("SIZE {path}/s"));
        write_at(&mut client, path);
        untouched(&sibling);
    }
    client.store("STOR ..//..//x", b"x");
    assert!(!client.list("LIST ..").iter().any(|l| l.contains("alice-private")));
    assert!(!daemon.site.dir.join("x").exists() && !daemon.site.dir.join("homes/x").exists());
}

#[test]
fn t19_links_in_the_middle_of_a_path_lead_nowhere_outside() {
    let Some(daemon) = daemon("T19") else { return };
    daemon.mkdir("alice", "data");
    daemon.put("alice", "data/f", b"inside");
    let home = daemon.site.account("alice").home.clone();
    let outside = daemon.site.dir.join("outside");
    open_to_all(&daemon, &outside);
    let outside_path = outside.to_str().expect("UTF-8");
    for (name, target) in [("out", outside_path), ("etc", "/etc"), ("in", "./data"), ("up", "../.."), ("abs", "/data")]
    {
        symlink(target, home.join(name)).expect("symlink");
    }
    let mut client = daemon.login("alice");
    assert!(client.try_fetch("RETR etc/passwd").is_err());
    for path in ["out", "up/outside", "in/../up/outside", "up/up/outside"] {
        assert!(client.try_fetch(format!("RETR {path}/s")).is_err(), "{path}");
        assert!(!client.ask(format!("CWD {path}")).is(2) || client.list("NLST").is_empty());
        client.expect("CWD /", &[250]);
        write_at(&mut client, path);
        untouched(&outside);
    }
    client.expect("RNFR in/f", &[350]);
    client.refused("RNTO out/f");
    untouched(&outside);
    assert_eq!(client.fetch("RETR in/f"), b"inside");
    if let Ok(bytes) = client.try_fetch("RETR abs/f") {
        assert_eq!(bytes, b"inside");
    }
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
