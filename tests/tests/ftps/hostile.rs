//! Clients that are broken or hostile (issue 4, "Bad input"), where a handshake is due and behind it, at both kinds of
//! listener: closed in bounded time, logged once, never answered in clear; and a session of the same worker is served meanwhile.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use e2e::{
    Daemon,
    ftp::{self, Client},
    until,
};
use rustls::{SupportedProtocolVersion, version::TLS13};

use super::wire::{BOTH, Session, over, shake, trusting};
use crate::site;

/// Longer than anything here may take that nobody waits for; a handshake has ten seconds.
const SOON: Duration = Duration::from_secs(5);

/// One worker, so that whoever delays it delays the witness.
struct Place {
    daemon: Daemon,
    implicit: SocketAddr,
    /// A session in clear.
    witness: Client,
}

/// How a client comes to its handshake.
#[derive(Debug, Clone, Copy)]
enum Door {
    Explicit,
    Implicit,
}

const DOORS: [Door; 2] = [Door::Explicit, Door::Implicit];

impl Place {
    fn new(scenario: &str) -> Option<Self> {
        let mut site = site(scenario)?;
        site.set("workers = 1");
        let implicit = site.listen_implicitly();
        let daemon = Daemon::start(site);
        let witness = daemon.login("alice");
        Some(Place { daemon, implicit, witness })
    }

    /// A connection on which the server waits for a ClientHello.
    fn knock(&self, door: Door) -> TcpStream {
        match door {
            Door::Implicit => ftp::data(TcpStream::connect(self.implicit).expect("connect")),
            Door::Explicit => {
                let mut client = self.daemon.connect();
                client.expect("AUTH TLS", &[234]);
                client.socket().try_clone().expect("dup")
            }
        }
    }

    /// The witness is answered without delay.
    fn prompt(&mut self) {
        let asked = Instant::now();
        self.witness.in_step();
        assert!(asked.elapsed() < Duration::from_secs(1), "NOOP took {:?}", asked.elapsed());
    }

    /// There is one line about this client's TLS in the log, and it says this.
    fn logged_once(&self, client: SocketAddr, words: &str) {
        let peer = format!("peer={client}");
        self.daemon.logged(&["TLS: ", words, &peer]);
        let log = self.daemon.log();
        let lines: Vec<_> = log.lines().filter(|line| line.contains(&peer) && line.contains("TLS")).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}

/// What comes until the server closes, which it must do in this time.
fn rest(mut socket: &TcpStream, limit: Duration) -> Vec<u8> {
    let (began, mut got, mut part) = (Instant::now(), Vec::new(), [0; 4096]);
    loop {
        let left = limit.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
        socket.set_read_timeout(Some(left)).expect("setsockopt");
        match socket.read(&mut part) {
            Ok(0) => return got,
            Ok(count) => got.extend_from_slice(&part[..count]),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return got,
            Err(error) => panic!("not closed within {limit:?}: {error}"),
        }
    }
}

/// Whether this is records of TLS, to the end.
fn is_tls(mut bytes: &[u8]) -> bool {
    while let [20..=23, 3, 0..=4, high, low, behind @ ..] = bytes {
        bytes = behind.get(usize::from(u16::from_be_bytes([*high, *low]))..).unwrap_or(b"cut");
    }
    bytes.is_empty()
}

fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("a record").to_be_bytes();
    [&[kind, 3, 1], &length[..], payload].concat()
}

/// The ClientHello of a client that knows nothing newer than `3.minor`, with ciphers of its time.
fn old_hello(minor: u8) -> Vec<u8> {
    let ciphers = [0, 0x2f, 0, 0x35, 0, 0x0a];
    let body = [&[3, minor][..], &[7; 32], &[0, 0, 6], &ciphers, &[1, 0]].concat();
    record(22, &[&[1, 0, 0, u8::try_from(body.len()).expect("short")][..], &body].concat())
}

/// The ClientHello of a client of today.
fn hello(place: &Place, version: &'static SupportedProtocolVersion) -> Vec<u8> {
    let mut wire =
        over(&trusting(&place.daemon.site, &[version]), TcpStream::connect(place.implicit).expect("connect"));
    let mut bytes = Vec::new();
    wire.conn.write_tls(&mut bytes).expect("a vector");
    bytes
}

/// no_renegotiation, a warning.
fn warnings(count: usize) -> Vec<u8> {
    record(21, &[1, 100]).repeat(count)
}

/// What is no handshake, or ends being one.
fn bad_handshakes(place: &Place) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("garbage", e2e::tree::content(4096, 3)),
        ("zeros", vec![0; 100]),
        ("an HTTP request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("a command in clear", b"NOOP\r\n".to_vec()),
        ("SSLv2", [&[0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10][..], &[7; 37]].concat()),
        ("SSLv3", old_hello(0)),
        ("TLS 1.0", old_hello(1)),
        ("TLS 1.1", old_hello(2)),
        ("the longest length of all", [&[22, 3, 1, 0xff, 0xff][..], &[1; 70_000]].concat()),
        ("a record one byte too long", [&[22, 3, 1, 0x48, 1][..], &[1; 0x4801]].concat()),
        ("a message of 16 MiB", record(22, &[1, 0xff, 0xff, 0xff, 3, 3])),
        ("application data", record(23, &[7; 100])),
        ("a flood of alerts", warnings(20_000)),
        ("a flood of alerts behind a hello of 1.2", [hello(place, BOTH[0]), warnings(20_000)].concat()),
        ("a flood of alerts behind a hello of 1.3", [hello(place, BOTH[1]), warnings(20_000)].concat()),
        ("a flood of hellos", hello(place, BOTH[0]).repeat(1000)),
        ("a message in pieces and something else", [record(22, &[1, 0, 1, 44]), record(23, &[7; 100])].concat()),
        ("a message in pieces of nothing", [record(22, &[1, 0, 1, 44]), record(22, &[]).repeat(5000)].concat()),
        (
            "a message in pieces that never ends",
            [record(22, &[1, 0, 0xff, 0xff]), record(22, &[7]).repeat(30_000)].concat(),
        ),
    ]
}

#[test]
fn whatever_is_no_handshake_is_closed_at_once_logged_once_and_delays_nobody() {
    let Some(mut place) = Place::new("bad handshakes") else { return };
    let cases = bad_handshakes(&place);
    for door in DOORS {
        for (name, bytes) in &cases {
            let mut socket = place.knock(door);
            let local = socket.local_addr().expect("getsockname");
            // The server may close before all of it is sent.
            let _ = socket.write_all(bytes);
            place.prompt();
            let got = rest(&socket, SOON);
            assert!(is_tls(&got), "{door:?}, {name}: {}", got.escape_ascii());
            place.logged_once(local, "");
        }
    }
    // Old clients are told by a fatal alert: handshake_failure or protocol_version (RFC 8446 6.2).
    let mut socket = place.knock(Door::Implicit);
    socket.write_all(&old_hello(1)).expect("send");
    let got = rest(&socket, SOON);
    assert!(matches!(got[..], [21, 3, _, 0, 2, 2, 40 | 70]), "{got:?}");
}

#[test]
fn whatever_is_no_handshake_on_a_data_connection_refuses_the_transfer_and_the_session_goes_on() {
    let Some(mut place) = Place::new("bad handshakes on data connections") else { return };
    let kept = place.daemon.put("alice", "kept", b"as it was");
    let mut session = Session::login(&place.daemon.site, "alice", &BOTH);
    for (name, bytes) in bad_handshakes(&place) {
        for line in ["STOR kept", "RETR kept"] {
            let mut data = session.control.passive();
            session.control.expect(line, &[150, 125]);
            let _ = data.write_all(&bytes);
            let asked = Instant::now();
            session.control.expect_reply(&[522, 426]);
            assert!(asked.elapsed() < SOON, "{name}: {:?}", asked.elapsed());
            let got = rest(&data, SOON);
            assert!(is_tls(&got), "{line}, {name}: {}", got.escape_ascii());
            place.prompt();
        }
        assert_eq!(std::fs::read(&kept).expect("read"), b"as it was", "{name}");
    }
    assert_eq!(session.fetch("RETR kept").0, b"as it was");
}

#[test]
fn half_handshakes_are_closed_after_ten_seconds_and_delay_nobody() {
    let Some(mut place) = Place::new("half handshakes") else { return };
    let hello = hello(&place, &TLS13);
    let halves = [&hello[..0], &hello[..1], &hello[..hello.len() / 2], &hello];
    let mut open = Vec::new();
    for door in DOORS {
        for half in halves {
            let mut socket = place.knock(door);
            socket.write_all(half).expect("send");
            open.push((socket, Instant::now()));
        }
    }
    // And on a data connection, of a session that goes on then.
    let mut session = Session::login(&place.daemon.site, "alice", &BOTH);
    let mut data = session.control.passive();
    session.control.expect("LIST", &[150, 125]);
    data.write_all(&hello[..hello.len() / 2]).expect("send");
    while open[0].1.elapsed() < Duration::from_secs(9) {
        place.prompt();
        std::thread::sleep(Duration::from_millis(100));
    }
    for (socket, since) in &open {
        let got = rest(socket, Duration::from_secs(6));
        assert!(is_tls(&got) && since.elapsed() > Duration::from_secs(9), "{:?}", since.elapsed());
        place.logged_once(socket.local_addr().expect("getsockname"), "");
    }
    session.control.expect_reply(&[522]);
    session.control.in_step();
    place.prompt();
}

/// A socket on which the first bytes, a ClientHello, go out one by one.
struct Drip {
    socket: TcpStream,
    left: usize,
    /// Each in a record of its own.
    pieces: bool,
}

impl Write for Drip {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if std::mem::take(&mut self.pieces) {
            let pieces: Vec<u8> = bytes[5..].iter().flat_map(|byte| record(bytes[0], &[*byte])).collect();
            return self.socket.write_all(&pieces).map(|()| bytes.len());
        }
        let one = if self.left > 0 { &bytes[..bytes.len().min(1)] } else { bytes };
        self.left = self.left.saturating_sub(1);
        self.socket.write(one)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Read for Drip {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.socket.read(buffer)
    }
}

#[test]
fn a_hello_that_comes_byte_by_byte_begins_a_session_like_any_other() {
    let Some(mut place) = Place::new("single bytes") else { return };
    let pieces = [false, true];
    for (door, (version, pieces)) in DOORS.into_iter().flat_map(|door| {
        BOTH.into_iter().zip(pieces).chain(BOTH.into_iter().rev().zip(pieces)).map(move |how| (door, how))
    }) {
        let config = trusting(&place.daemon.site, &[version]);
        let socket = place.knock(door);
        socket.set_nodelay(true).expect("setsockopt");
        let mut client = Client::over(socket);
        client.over_wire(|socket| {
            let conn = over(&config, socket.try_clone().expect("dup")).conn;
            Box::new(rustls::StreamOwned::new(conn, Drip { socket, left: if pieces { 0 } else { 400 }, pieces }))
        });
        if matches!(door, Door::Implicit) {
            client.expect_reply(&[220]);
        }
        client.login("alice", "correct horse");
        client.in_step();
        place.prompt();
    }
}

#[test]
fn records_of_any_allowed_length_are_read_and_longer_ones_end_the_session() {
    let Some(mut place) = Place::new("lengths of records") else { return };
    for version in BOTH {
        let mut session = Session::login(&place.daemon.site, "alice", &[version]);
        // Records of 16384 bytes, whose ends are in the middle of lines.
        let count = 40_000;
        session.control.raw("NOOP\r\n".repeat(count).as_bytes());
        (0..count).for_each(|_| drop(session.control.expect_reply(&[200])));
        // Empty and tiny ones.
        for byte in b"NOOP\r\n" {
            session.control.raw(&[]);
            session.control.raw(&[*byte]);
        }
        session.control.expect_reply(&[200]);
        session.control.in_step();

        for length in [0x4801_u16, 0xffff] {
            let session = Session::login(&place.daemon.site, "alice", &[version]);
            let mut socket = session.control.socket().try_clone().expect("dup");
            let [high, low] = length.to_be_bytes();
            let _ = socket.write_all(&[&[23, 3, 3, high, low][..], &vec![1; usize::from(length)]].concat());
            assert!(is_tls(&rest(&socket, SOON)), "{version:?}");
            place.logged_once(session.control.local(), "");
            place.prompt();
        }
    }
}

#[test]
fn a_flood_of_key_updates_ends_the_session_that_sends_it_and_a_few_do_not() {
    let Some(mut place) = Place::new("key updates") else { return };
    for door in DOORS {
        let config = trusting(&place.daemon.site, &[&TLS13]);
        let socket = place.knock(door);
        let local = socket.local_addr().expect("getsockname");
        let mut wire = over(&config, socket);
        shake(&mut wire).expect("a handshake");
        let mut part = [0; 200];
        for turn in 0..6 {
            wire.conn.refresh_traffic_keys().expect("a key update");
            wire.write_all(b"NOOP\r\n").expect("send");
            wire.flush().expect("send");
            let got = wire.read(&mut part).expect("a reply");
            let greeting = turn == 0 && matches!(door, Door::Implicit);
            assert!(part[..got].starts_with(if greeting { b"220" } else { b"200" }), "{turn}");
        }
        for _ in 0..5000 {
            let sent = wire.conn.refresh_traffic_keys().map_err(std::io::Error::other).and_then(|()| wire.flush());
            if sent.is_err() {
                break;
            }
        }
        place.prompt();
        assert!(is_tls(&rest(&wire.sock, SOON)));
        place.logged_once(local, "the client broke the protocol");
    }
}

#[test]
fn what_was_sent_in_clear_behind_auth_is_dropped_and_never_executed() {
    let Some(mut place) = Place::new("pipelined") else { return };
    let mut client = place.daemon.connect();
    client.raw(b"AUTH TLS\r\nUSER alice\r\nPASS correct horse\r\nMKD made\r\nPBSZ 0\r\nNO");
    client.expect_reply(&[234]);
    let config = trusting(&place.daemon.site, &BOTH);
    client.over_wire(|socket| Box::new(over(&config, socket)));
    client.expect("PASS correct horse", &[503]);
    client.expect("PROT P", &[503]);
    client.login("alice", "correct horse");
    client.in_step();
    assert!(!place.daemon.home("alice", "made").exists());

    // The same behind 234: it is no handshake, so it ends the connection.
    let mut socket = place.knock(Door::Explicit);
    socket.write_all(b"USER alice\r\nPASS correct horse\r\nMKD made\r\n").expect("send");
    assert!(is_tls(&rest(&socket, SOON)));
    place.prompt();
    assert!(!place.daemon.home("alice", "made").exists());
}

#[test]
fn there_is_no_way_back_to_clear() {
    let Some(mut place) = Place::new("no downgrade") else { return };
    for version in BOTH {
        let mut session = Session::login(&place.daemon.site, "alice", &[version]);
        for line in ["CCC", "AUTH TLS", "REIN", "PROT S"] {
            session.control.refused(line);
        }
        session.control.in_step();
        let mut socket = session.control.socket().try_clone().expect("dup");
        socket.write_all(b"NOOP\r\nMKD made\r\n").expect("send");
        assert!(is_tls(&rest(&socket, SOON)), "{version:?}");
        place.logged_once(session.control.local(), "");
        until("it is gone", || (!place.daemon.home("alice", "made").exists()).then_some(()));
        place.prompt();
    }
}
