//! Time limits (RFC 959 5.4, RFC 1123 4.1.3.2) and failing writes (RFC 959 5.4).

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    thread,
    time::{Duration, Instant},
};

use crate::{daemon, daemon_with, sparse};

#[test]
fn t28_a_long_transfer_is_not_idleness() {
    let Some(daemon) = daemon_with("T28", &["idle_timeout_secs = 1"]) else { return };
    sparse(&daemon, "big", 64 << 20);
    let mut client = daemon.login("alice");
    let mut connection = client.passive();
    client.expect("STOR up", &[150, 125]);
    for _ in 0..6 {
        connection.write_all(&[b'x'; 1000]).expect("send");
        thread::sleep(Duration::from_millis(400));
    }
    drop(connection);
    client.expect_reply(&[226]);
    let mut connection = client.passive();
    client.expect("RETR big", &[150, 125]);
    let began = Instant::now();
    let mut left: usize = 64 << 20;
    while left > 0 {
        let slow = began.elapsed() < Duration::from_millis(2400);
        if slow {
            thread::sleep(Duration::from_millis(100));
        }
        let part = left.min(1 << 20);
        connection.read_exact(&mut vec![0; part]).expect("the transfer goes on");
        left -= part;
    }
    drop(connection);
    client.expect_reply(&[226]);
    thread::sleep(Duration::from_millis(500));
    client.expect("NOOP", &[200]);
    client.expect_reply(&[421]);
    assert!(client.ends().is_empty());
}

#[test]
fn t30_what_cannot_be_opened_is_refused_and_the_next_transfer_works() {
    let Some(daemon) = daemon("T30") else { return };
    let mut client = daemon.login("alice");
    let read_only = daemon.mkdir("alice", "read-only");
    daemon.put("alice", "locked", b"old");
    daemon.put("alice", "unreadable", b"old");
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o555)).expect("chmod");
    for (name, mode) in [("locked", 0o444), ("unreadable", 0o000)] {
        fs::set_permissions(daemon.home("alice", name), fs::Permissions::from_mode(mode)).expect("chmod");
    }
    let long = "n".repeat(300);
    for line in [
        "STOR read-only/x",
        "STOR read-only",
        "STOR no/parent/x",
        "STOR locked",
        &format!("STOR {long}"),
        "RETR read-only",
        "RETR missing",
        "RETR unreadable",
    ] {
        let connection = client.passive();
        let mut reply = client.ask(line);
        drop(connection);
        if reply.is(1) {
            reply = client.reply();
        }
        assert!(reply.is(4) || reply.is(5), "{line}: {reply:?}");
    }
    assert_eq!(fs::read(daemon.home("alice", "locked")).expect("read"), b"old");
    client.stored("STOR good", b"good");
    client.in_step();
}
