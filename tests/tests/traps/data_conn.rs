//! Data connections: when 226 leaves, how many ports a session holds, who may connect (RFC 959 3.2 and 5.2, RFC 2577).

use std::{
    fs,
    io::{ErrorKind, Read},
    net::TcpStream,
    thread,
    time::Duration,
};

use e2e::{ftp, until};

use crate::{daemon, sparse};

/// The state of a connection of ours, as Linux numbers it (include/net/tcp_states.h).
fn state(connection: &TcpStream) -> u8 {
    let port = format!(":{:04X} ", connection.local_addr().expect("getsockname").port());
    let table = fs::read_to_string("/proc/net/tcp").expect("connections");
    let line = table.lines().find(|line| line.split_once(": ").is_some_and(|(_, rest)| rest[8..].starts_with(&port)));
    let state = line.and_then(|line| line.split_ascii_whitespace().nth(3)).expect("the connection is listed");
    u8::from_str_radix(state, 16).expect("a number")
}

#[test]
fn t05_226_leaves_only_after_the_end_of_the_data_connection() {
    const CLOSE_WAIT: u8 = 8;
    let Some(daemon) = daemon("T05") else { return };
    sparse(&daemon, "five", 5 << 20);
    sparse(&daemon, "sixteen", 16 << 10);
    sparse(&daemon, "empty", 0);
    let mut client = daemon.login("alice");
    for (kind, line, size) in [
        ("TYPE I", "RETR five", 5 << 20),
        ("TYPE I", "RETR sixteen", 16 << 10),
        ("TYPE I", "RETR empty", 0),
        ("TYPE A", "RETR five", 5 << 20),
        ("TYPE A", "LIST", 1),
    ] {
        client.expect(kind, &[200]);
        let connection = client.passive();
        nix::sys::socket::setsockopt(&connection, nix::sys::socket::sockopt::RcvBuf, &(64 << 10)).expect("SO_RCVBUF");
        client.expect(line, &[150, 125]);
        let mut reader = connection.try_clone().expect("dup");
        let reader = thread::spawn(move || {
            let mut bytes = 0;
            let mut part = vec![0; 64 << 10];
            // Slow on the data connection, quick on control.
            loop {
                thread::sleep(Duration::from_millis(1));
                match reader.read(&mut part).expect("read") {
                    0 => return bytes,
                    count => bytes += count,
                }
            }
        });
        client.expect_reply(&[226]);
        // Once 226 is there, everything and the end are in the client's kernel.
        assert_eq!(state(&connection), CLOSE_WAIT, "{line}: the server's FIN has not come before 226");
        let got = reader.join().expect("the reader");
        assert!(got >= size, "{line}: {got} bytes");
    }
}

#[test]
fn t05_a_client_that_closes_its_side_early_is_not_told_226() {
    let Some(daemon) = daemon("T05, closed early") else { return };
    sparse(&daemon, "one", 1 << 20);
    let mut client = daemon.login("alice");
    let connection = client.passive();
    nix::sys::socket::setsockopt(&connection, nix::sys::socket::sockopt::RcvBuf, &8192).expect("SO_RCVBUF");
    client.expect("RETR one", &[150]);
    // All of it is with the server's kernel by now, and the client's has no room for it.
    thread::sleep(Duration::from_millis(300));
    drop(connection);
    client.expect_reply(&[426]);
    client.in_step();
}

#[test]
fn t06_a_session_holds_one_passive_port_however_often_it_asks() {
    if !e2e::root_or_skip("T06") {
        return;
    }
    let mut site = e2e::Site::new();
    site.passive = (18_100, 18_109);
    let daemon = e2e::Daemon::start(site);
    let mut client = daemon.login("alice");
    let first = client.epsv();
    for turn in 0..200 {
        if turn % 2 == 0 {
            client.pasv()
        } else {
            client.epsv()
        };
    }
    assert_eq!(client.list("LIST"), [""; 0]);
    let mut others: Vec<_> = (0..4).map(|_| daemon.login("bob")).collect();
    for other in &mut others {
        assert_eq!(other.list("LIST"), [""; 0], "another session gets a port");
    }
    if let Ok(stray) = TcpStream::connect(first) {
        gets_nothing(stray);
    }
}

#[test]
fn t06_an_old_passive_port_refuses_while_a_transfer_runs_on_the_new_one_and_after() {
    if !e2e::root_or_skip("T06, an old port") {
        return;
    }
    let mut site = e2e::Site::new();
    site.passive = (18_110, 18_119);
    let daemon = e2e::Daemon::start(site);
    sparse(&daemon, "big", 64 << 20);
    let mut client = daemon.login("alice");
    let old = client.epsv();
    let connection = ftp::data(TcpStream::connect(old).expect("connect"));
    client.expect("RETR big", &[150, 125]);
    // The worker may keep the port for the next transfer, but it serves nobody meanwhile.
    if let Ok(stray) = TcpStream::connect(old) {
        gets_nothing(stray);
    }
    assert_eq!(ftp::drain(connection).len(), 64 << 20);
    client.expect_reply(&[226]);
    let refuses = || TcpStream::connect(old).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
    until("a port that nobody needs is closed", || refuses().then_some(()));
    let connection = until("another port is told", || {
        let new = client.epsv();
        let connection = TcpStream::connect(new).expect("connect");
        if new == old {
            client.expect("LIST", &[150, 125]);
            drop(ftp::drain(connection));
            client.expect_reply(&[226]);
            until("it is closed again", || refuses().then_some(()));
            return None;
        }
        Some(ftp::data(connection))
    });
    client.expect("RETR big", &[150, 125]);
    assert!(refuses(), "while the transfer runs");
    assert_eq!(ftp::drain(connection).len(), 64 << 20);
    client.expect_reply(&[226]);
    assert!(refuses(), "after it");
}

/// Checks that a connection is closed without a byte, in good time.
fn gets_nothing(mut stranger: TcpStream) {
    stranger.set_read_timeout(Some(Duration::from_secs(10))).expect("setsockopt");
    match stranger.read(&mut [0; 1]) {
        Ok(0) => {}
        Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("a stranger's connection was not closed: {other:?}"),
    }
}

#[test]
fn t07_whoever_reaches_the_port_first_from_elsewhere_gets_and_gives_nothing() {
    let Some(daemon) = daemon("T07") else { return };
    daemon.put("alice", "f", b"for alice");
    let mut client = daemon.login("alice");
    let address = client.epsv();
    let thief = ftp::connect_from("127.0.0.2", address);
    let connection = ftp::data(TcpStream::connect(address).expect("connect"));
    client.expect("RETR f", &[150, 125]);
    assert_eq!(ftp::drain(connection), b"for alice");
    client.expect_reply(&[226]);
    gets_nothing(thief);

    let address = client.epsv();
    let mut thief = ftp::connect_from("127.0.0.2", address);
    let _ = std::io::Write::write_all(&mut thief, b"poison");
    let mut connection = ftp::data(TcpStream::connect(address).expect("connect"));
    client.expect("STOR g", &[150, 125]);
    std::io::Write::write_all(&mut connection, b"genuine").expect("send");
    drop(connection);
    client.expect_reply(&[226]);
    assert_eq!(std::fs::read(daemon.home("alice", "g")).expect("read"), b"genuine");
    gets_nothing(thief);
}
