//! AVBL, CLNT, LANG (RFC 2640 4), HOST (RFC 7151), MFF and MFCT (draft-somers-ftp-mfxx), EPSV ALL (RFC 2428 4), and
//! STOU, APPE and REST in every order (RFC 959 4.1.3, RFC 3659 5).

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use crate::daemon;

#[test]
fn space_is_told_in_bytes() {
    let Some(daemon) = daemon("AVBL") else { return };
    daemon.mkdir("alice", "d");
    let free = rustix::fs::statvfs(daemon.home("alice", ".")).map(|s| s.f_bavail * s.f_frsize).expect("statvfs");
    let mut client = daemon.login("alice");
    for line in ["AVBL", "AVBL d", "AVBL /"] {
        let told: u64 = client.expect(line, &[213]).text().parse().expect("a number");
        assert!(told.abs_diff(free) < free / 4 + (64 << 20), "{line}: {told}, {free}");
    }
    client.expect("AVBL missing", &[550]);
    daemon.connect().expect("AVBL", &[530]);
}

#[test]
fn clients_may_say_their_name_and_language_at_any_time() {
    let Some(daemon) = daemon("CLNT, LANG") else { return };
    let mut client = daemon.connect();
    for login in [false, true] {
        if login {
            client.login("alice", daemon.site.account("alice").password);
        }
        for (line, code) in [
            ("CLNT FileZilla 3.67", 200),
            ("CLNT", 501),
            ("LANG", 200),
            ("LANG EN", 200),
            ("LANG EN-us", 200),
            ("lang en-GB-oed", 200),
            ("LANG eng", 504),
            ("LANG en-", 501),
            ("lang en", 200),
            ("LANG fr-CA", 504),
            ("LANG e n", 501),
        ] {
            client.expect(line, &[code]);
        }
    }
}

#[test]
fn host_is_for_those_who_are_nobody_yet() {
    let Some(daemon) = daemon("HOST") else { return };
    let mut client = daemon.connect();
    for (line, code) in [
        ("HOST ftp.example.com", 220),
        ("HOST 192.0.2.1", 220),
        ("HOST [2001:db8::1]", 220),
        ("HOST", 501),
        ("HOST a..b", 501),
        ("HOST a b", 501),
    ] {
        client.expect(line, &[code]);
    }
    client.expect("USER alice", &[331]);
    client.expect("HOST ftp.example.com", &[503]);
    client.expect(format!("PASS {}", daemon.site.account("alice").password), &[230]);
    client.expect("HOST ftp.example.com", &[503]);
    client.expect("REIN", &[220]);
    client.expect("HOST ftp.example.com", &[220]);
}

#[test]
fn facts_are_set_together_or_not_at_all() {
    let Some(daemon) = daemon("MFF") else { return };
    let file = daemon.put("alice", "a b", b"x");
    let facts = || fs::metadata(&file).map(|m| (m.mtime(), m.permissions().mode() & 0o7777)).expect("stat");
    let mut client = daemon.login("alice");
    let reply = client.expect("MFF Modify=20010203040506;UNIX.mode=640; a b", &[213]);
    assert_eq!(reply.text(), "Modify=20010203040506;UNIX.mode=0640; /a b");
    assert_eq!(facts(), (981_173_106, 0o640));
    client.expect("MFF unix.MODE=600; a b", &[213]);
    client.expect("MFF modify=19700101000001; a b", &[213]);
    for (line, code) in [
        ("MFF UNIX.mode=4755;Modify=20010203040506; a b", 550),
        ("MFF Modify=20010203040506;Create=20010203040506; a b", 504),
        ("MFF Modify=20010203040506;UNIX.owner=0; a b", 504),
        ("MFF Modify=never; a b", 501),
        ("MFF Modify=20010203040506 a b", 501),
        ("MFF Modify=20010203040506;", 501),
        ("MFF", 501),
        ("MFF UNIX.mode=600; missing", 550),
        ("MFCT 20010203040506 a b", 502),
        ("MFCT", 502),
    ] {
        client.expect(line, &[code]);
        assert_eq!(facts(), (1, 0o600), "{line}");
    }
}

#[test]
fn epsv_all_leaves_only_epsv() {
    let Some(daemon) = daemon("EPSV ALL") else { return };
    daemon.put("alice", "f", b"content");
    let mut client = daemon.login("alice");
    client.expect("EPSV ALL", &[200]);
    for line in ["PASV", "PORT 127,0,0,1,200,1", "EPRT |1|127.0.0.1|50000|"] {
        client.expect(line, &[503, 501]);
    }
    assert_eq!(client.fetch("RETR f"), b"content");
}

#[test]
fn rest_appe_and_stou_go_together_as_documented() {
    let Some(daemon) = daemon("REST, APPE, STOU") else { return };
    let file = daemon.put("alice", "f", b"0123456789");
    let content = || fs::read(&file).expect("read");
    let mut client = daemon.login("alice");
    client.expect("REST 4", &[350]);
    client.stored("APPE f", b"abc");
    assert_eq!(content(), b"0123abc", "behind REST, APPE is STOR");
    client.stored("APPE f", b"def");
    assert_eq!(content(), b"0123abcdef", "REST is spent");
    client.expect("REST 4", &[350]);
    client.expect("REST 0", &[350]);
    client.stored("APPE f", b"!");
    assert_eq!(content(), b"0123abcdef!", "REST 0 is none");
    client.expect("REST 4", &[350]);
    assert_eq!(client.store("STOU f", b"x").code, 554);
    client.stored("STOU f", b"x");
    assert_eq!(content(), b"0123abcdef!", "STOU leaves it alone");
    client.expect("REST 99", &[350]);
    assert_eq!(client.store("APPE f", b"x").code, 554);
    client.stored("APPE f", b"?");
    assert_eq!(content(), b"0123abcdef!?");
    client.expect("REST 2", &[350]);
    client.expect("TYPE A", &[200]);
    assert_eq!(client.store("STOR f", b"x").code, 554);
    client.stored("APPE f", b"\r\n");
    assert_eq!(content(), b"0123abcdef!?\n");
}
