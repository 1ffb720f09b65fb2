//! SITE HELP, UMASK, UTIME, SYMLINK, IDLE, CPFR and CPTO.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
};

use e2e::{Daemon, Site, root_or_skip, tree};

use crate::daemon;

#[test]
fn help_lists_the_commands_there_are() {
    let Some(daemon) = daemon("SITE HELP") else { return };
    let mut client = daemon.login("alice");
    let listed = client.expect("SITE HELP", &[214]).inner();
    let names: Vec<&str> = listed.iter().filter_map(|line| line.trim().split(' ').next()).collect();
    assert_eq!(names, ["CHMOD", "CPFR", "CPTO", "HELP", "IDLE", "SYMLINK", "UMASK", "UTIME"]);
    client.expect("SITE", &[501]);
    client.expect("SITE EXEC id", &[504]);
}

#[test]
fn the_umask_of_a_session_can_only_be_more_careful() {
    let Some(daemon) = daemon("SITE UMASK") else { return };
    let mode = |path: &str| fs::metadata(daemon.home("alice", path)).expect("stat").permissions().mode() & 0o7777;
    let mut client = daemon.login("alice");
    assert!(client.expect("SITE UMASK", &[200]).text().contains("000"));
    client.expect("SITE UMASK 077", &[200]);
    client.stored("STOR f", b"x");
    client.expect("MKD d", &[257]);
    client.expect("SITE CPFR f", &[350]);
    client.expect("SITE CPTO g", &[250]);
    assert_eq!((mode("f"), mode("d"), mode("g")), (0o600, 0o700, 0o600));
    client.expect("SITE UMASK 0", &[200]);
    client.stored("STOR loose", b"x");
    assert_eq!(mode("loose"), 0o644, "the account's own mask still holds");
    for bad in ["8", "1000", "-1", "x", "0 0"] {
        client.expect(format!("SITE UMASK {bad}"), &[501]);
    }
    daemon.login("alice").stored("STOR other", b"x");
    assert_eq!(mode("other"), 0o644, "another session has its own");
}

#[test]
fn utime_sets_times_in_both_forms() {
    let Some(daemon) = daemon("SITE UTIME") else { return };
    let file = daemon.put("alice", "a b", b"x");
    let times = || fs::metadata(&file).map(|meta| (meta.atime(), meta.mtime())).expect("stat");
    let mut client = daemon.login("alice");
    client.expect("SITE UTIME 200102030405 a b", &[200]);
    assert_eq!(times(), (981_173_100, 981_173_100));
    client.expect("SITE UTIME 20010203040506 a b", &[200]);
    assert_eq!(times(), (981_173_106, 981_173_106));
    client.expect("SITE UTIME a b 19700101000001 19700101000002 19700101000003 UTC", &[200]);
    assert_eq!(times(), (1, 2));
    for (bad, code) in [
        ("", 501),
        ("20010203040506", 501),
        ("20011303040506 a b", 501),
        ("a b 19700101000001 19700101000002 UTC", 501),
        ("20010203040506 missing", 550),
    ] {
        client.expect(format!("SITE UTIME {bad}"), &[code]);
    }
    assert_eq!(times(), (1, 2));
}

#[test]
fn links_lead_to_the_same_place_inside_and_outside() {
    let Some(daemon) = daemon("SITE SYMLINK") else { return };
    daemon.mkdir("alice", "d");
    daemon.put("alice", "f", b"content");
    symlink("d", daemon.home("alice", "way")).expect("symlink");
    let mut client = daemon.login("alice");
    client.expect("SITE SYMLINK /f d/link", &[200]);
    assert_eq!(client.fetch("RETR d/link"), b"content");
    assert_eq!(fs::read_link(daemon.home("alice", "d/link")).expect("a link"), Path::new("../f"));
    assert_eq!(fs::read(daemon.home("alice", "d/link")).expect("from outside"), b"content");
    client.expect("SITE SYMLINK ../../../etc/passwd climb", &[200]);
    assert_eq!(fs::read_link(daemon.home("alice", "climb")).expect("a link"), Path::new("etc/passwd"));
    assert!(client.try_fetch("RETR climb").is_err());
    for (line, code) in [
        ("SITE SYMLINK f d/link", 550),
        ("SITE SYMLINK f way/link", 553),
        ("SITE SYMLINK f no/link", 550),
        ("SITE SYMLINK f", 501),
        ("SITE SYMLINK", 501),
        ("SITE SYMLINK f a b", 501),
    ] {
        client.expect(line, &[code]);
    }
}

#[test]
fn idle_time_is_shortened_and_never_lengthened() {
    if !root_or_skip("SITE IDLE") {
        return;
    }
    let mut site = Site::new();
    site.set("idle_timeout_secs = 30");
    let daemon = Daemon::start(site);
    let mut client = daemon.login("alice");
    assert!(client.expect("SITE IDLE", &[200]).text().contains("30 seconds"));
    for bad in ["31", "0", "-1", "x", "99999999999"] {
        client.expect(format!("SITE IDLE {bad}"), &[501]);
    }
    client.expect("SITE IDLE 1", &[200]);
    assert_eq!(client.reply().code, 421);
    assert!(client.ends().is_empty());
}

#[test]
fn a_copy_is_whole_and_replaces_what_is_there() {
    let Some(daemon) = daemon("SITE CPTO") else { return };
    let content = tree::content(5_000_003, 14);
    daemon.put("alice", "f", &content);
    daemon.put("alice", "g", &[b'x'; 6_000_000]);
    daemon.put("alice", "empty", b"");
    daemon.mkdir("alice", "d");
    let mut client = daemon.login("alice");
    for to in ["new", "g", "d/h"] {
        client.expect("SITE CPFR f", &[350]);
        client.expect(format!("SITE CPTO {to}"), &[250]);
        assert!(fs::read(daemon.home("alice", to)).expect("the copy") == content, "{to}");
        assert_eq!(fs::metadata(daemon.home("alice", to)).expect("stat").uid(), daemon.site.account("alice").uid);
    }
    client.expect("SITE CPFR empty", &[350]);
    client.expect("SITE CPTO new", &[250]);
    assert_eq!(fs::read(daemon.home("alice", "new")).expect("the copy"), b"");
    client.expect("SITE CPTO again", &[503]);
}

#[test]
fn a_copy_that_makes_no_sense_is_refused_and_changes_nothing() {
    let Some(daemon) = daemon("refused copies") else { return };
    daemon.put("alice", "f", b"content");
    daemon.mkdir("alice", "d");
    symlink("f", daemon.home("alice", "link")).expect("symlink");
    fs::hard_link(daemon.home("alice", "f"), daemon.home("alice", "hard")).expect("link");
    let mut client = daemon.login("alice");
    for line in ["SITE CPFR missing", "SITE CPFR d", "SITE CPFR"] {
        client.refused(line);
        client.expect("SITE CPTO x", &[503]);
    }
    for to in ["f", "link", "hard", "d", "no/such/directory", ""] {
        client.expect("SITE CPFR f", &[350]);
        client.refused(format!("SITE CPTO {to}"));
        client.expect("SITE CPTO x", &[503]);
        assert_eq!(fs::read(daemon.home("alice", "f")).expect("the source"), b"content", "{to}");
    }
    assert!(!daemon.home("alice", "x").exists());
}

#[test]
fn a_long_copy_holds_up_nobody_and_is_cut_by_abor() {
    if !root_or_skip("a long copy") {
        return;
    }
    let mut site = Site::roomy();
    site.set("workers = 1");
    let daemon = Daemon::start(site);
    let big = fs::File::create(daemon.home("alice", "big")).expect("create");
    big.set_len(1 << 40).expect("a sparse file nobody can copy in time");
    let (mut copying, mut other) = (daemon.login("alice"), daemon.login("alice"));
    copying.expect("SITE CPFR big", &[350]);
    copying.send("SITE CPTO copy");
    copying.send("ABOR");
    other.stored("STOR small", b"x");
    copying.expect_reply(&[426]);
    copying.expect_reply(&[226]);
    copying.in_step();
    assert!(fs::metadata(daemon.home("alice", "copy")).expect("what was copied stays").len() < 1 << 40);
    copying.expect("DELE copy", &[250]);
}
