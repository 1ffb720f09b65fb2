//! The end of an upload (T03, T04): it is whole when the client has said close_notify, and only then; and of a download (T05).

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

use e2e::{Daemon, Site, until};
use rustix::net::sockopt::set_socket_linger;

use super::wire::{BOTH, Session, shake};
use crate::site;

/// How a client that breaks off does so.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// FIN.
    Closed,
    /// FIN, while it could still read.
    HalfClosed,
    /// RST.
    Reset,
}

#[test]
fn t03_an_upload_that_ends_without_close_notify_is_not_complete() {
    for atomic in [false, true] {
        let Some(mut site) = site("T03") else { return };
        site.set(&format!("atomic_uploads = {atomic}"));
        let daemon = Daemon::start(site);
        for version in BOTH {
            let mut session = Session::login(&daemon.site, "alice", &[version]);
            for cut in [Cut::Closed, Cut::HalfClosed, Cut::Reset] {
                let mut data = session.data();
                session.control.expect("STOR cut.bin", &[150, 125]);
                data.write_all(&[7; 100_000]).expect("send");
                data.flush().expect("send");
                match cut {
                    Cut::Closed => {}
                    Cut::HalfClosed => data.sock.shutdown(Shutdown::Write).expect("shutdown"),
                    Cut::Reset => set_socket_linger(&data.sock, Some(Duration::ZERO)).expect("setsockopt"),
                }
                let open = matches!(cut, Cut::HalfClosed).then_some(data);
                let reply = session.control.expect_reply(&[426, 451]);
                drop(open);
                if atomic {
                    let names = || fs::read_dir(daemon.home("alice", "")).expect("list").count();
                    until("nothing is left of it", || (names() == 0).then_some(()));
                }
                session.control.in_step();
                assert!(reply.is(4), "{version:?}, {cut:?}");
            }
            let (_, reply) = session.store("STOR whole.bin", b"whole");
            assert_eq!(reply.code, 226);
            fs::remove_file(daemon.home("alice", "whole.bin")).expect("unlink");
        }
    }
}

/// An upload by a client that makes its handshake, sends, and closes without reading anything behind the handshake.
fn store_blindly(session: &mut Session, line: &str, content: &[u8]) {
    let mut data = session.data();
    session.control.expect(line, &[150, 125]);
    shake(&mut data).expect("a handshake");
    data.write_all(content).expect("send");
    data.conn.send_close_notify();
    data.flush().expect("send");
    let _ = data.sock.shutdown(Shutdown::Both);
    drop(data);
    session.control.expect_reply(&[226]);
}

/// Whether the server has closed a connection of ours, which has not closed it (include/net/tcp_states.h: TCP_CLOSE_WAIT).
fn server_has_closed(connection: &TcpStream) -> bool {
    let port = |address: std::io::Result<std::net::SocketAddr>| format!(":{:04X}", address.expect("an address").port());
    let (ours, theirs) = (port(connection.local_addr()), port(connection.peer_addr()));
    let table = fs::read_to_string("/proc/net/tcp").expect("connections");
    let is_it = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let it = fields.get(1)?.ends_with(&ours) && fields.get(2)?.ends_with(&theirs);
        it.then(|| fields[3] == "08")
    };
    table.lines().find_map(is_it).expect("the connection is listed")
}

#[test]
fn t05_226_leaves_only_after_close_notify_and_the_end_of_the_data_connection() {
    let Some(site) = site("T05 under TLS") else { return };
    let daemon = Daemon::start(site);
    for (name, size) in [("five", 5 << 20), ("sixteen", 16 << 10), ("empty", 0)] {
        daemon.put("alice", name, &vec![7; size]);
    }
    for version in BOTH {
        let mut session = Session::login(&daemon.site, "alice", &[version]);
        for (kind, line, size) in [
            ("TYPE I", "RETR five", 5 << 20),
            ("TYPE I", "RETR sixteen", 16 << 10),
            ("TYPE I", "RETR empty", 0),
            ("TYPE A", "RETR five", 5 << 20),
            ("TYPE A", "LIST", 1),
        ] {
            session.control.expect(kind, &[200]);
            let mut data = session.data();
            let socket = data.sock.try_clone().expect("dup");
            nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBuf, &(64 << 10)).expect("SO_RCVBUF");
            session.control.expect(line, &[150, 125]);
            // Slow on the data connection, quick on control.
            let reader = thread::spawn(move || {
                let (mut bytes, mut part) = (0, vec![0; 64 << 10]);
                loop {
                    thread::sleep(Duration::from_millis(1));
                    // Without close_notify the end is an error.
                    match data.read(&mut part).expect("read") {
                        0 => return (bytes, data),
                        count => bytes += count,
                    }
                }
            });
            session.control.expect_reply(&[226]);
            assert!(server_has_closed(&socket), "{version:?}, {line}: the server's FIN has not come before 226");
            let (got, data) = reader.join().expect("the reader");
            assert!(got >= size, "{version:?}, {line}: {got} bytes");
            drop(data);
        }
    }
}

#[test]
fn a_download_of_an_empty_file_is_complete_for_a_client_that_closes_without_reading_its_end() {
    let Some(site) = site("empty downloads") else { return };
    let daemon = Daemon::start(site);
    daemon.put("alice", "empty", b"");
    daemon.put("alice", "full", &vec![1; 20 << 20]);
    for version in BOTH {
        let mut session = Session::login(&daemon.site, "alice", &[version]);
        for turn in 0..100 {
            let mut data = session.data();
            session.control.expect("RETR empty", &[150, 125]);
            shake(&mut data).expect("a handshake");
            if turn % 2 == 0 {
                set_socket_linger(&data.sock, Some(Duration::ZERO)).expect("setsockopt");
            }
            drop(data);
            session.control.expect_reply(&[226]);
        }
        let mut data = session.data();
        session.control.expect("RETR full", &[150, 125]);
        shake(&mut data).expect("a handshake");
        set_socket_linger(&data.sock, Some(Duration::ZERO)).expect("setsockopt");
        drop(data);
        session.control.expect_reply(&[426]);
    }
}

#[test]
fn t04_a_client_that_closes_without_reading_loses_nothing_of_fifty_uploads_of_fifty_mebibytes() {
    if !e2e::root_or_skip("T04") {
        return;
    }
    let mut site = Site::roomy();
    site.certify();
    let daemon = Daemon::start(site);
    let content = e2e::tree::content(50 << 20, 4);
    let path = daemon.home("alice", "fifty");
    for version in BOTH.into_iter().rev() {
        let mut session = Session::login(&daemon.site, "alice", &[version]);
        // TLS 1.2 has no tickets behind the handshake that could stay unread; a few uploads will do.
        let turns = if version.version == rustls::ProtocolVersion::TLSv1_3 { 50 } else { 5 };
        for turn in 0..turns {
            store_blindly(&mut session, "STOR fifty", &content);
            assert!(fs::read(&path).expect("read") == content, "{version:?}, {turn}");
        }
        for turn in 0..50 {
            store_blindly(&mut session, "STOR empty", b"");
            let length = fs::metadata(daemon.home("alice", "empty")).expect("it exists").len();
            assert_eq!(length, 0, "{version:?}, {turn}");
            fs::remove_file(daemon.home("alice", "empty")).expect("unlink");
        }
    }
}
