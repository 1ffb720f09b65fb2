//! Whose a data connection is (T01, T02): tickets that are spent are replaced, and nobody else's are good.

use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
};

use e2e::{Daemon, ftp::Client};
use rustls::HandshakeKind;

use super::wire::{BOTH, Session, over};
use crate::site;

/// Data connections in a row: more than all tickets that were handed out to begin with.
const MANY: usize = 30;

#[test]
fn t01_many_data_connections_in_a_row_are_resumed_by_a_client_that_uses_each_ticket_once() {
    let Some(mut site) = site("T01") else { return };
    site.set("data_resumption = \"required\"");
    let daemon = Daemon::start(site);
    for version in BOTH {
        let mut session = Session::login(&daemon.site, "alice", &[version]);
        let content = e2e::tree::content(100_000, 1);
        for turn in 0..MANY {
            let (kind, reply) = match turn % 3 {
                0 => session.store(&format!("STOR f{turn}"), &content),
                1 => {
                    let (bytes, kind, reply) = session.fetch(&format!("RETR f{}", turn - 1));
                    assert!(bytes == content, "{version:?}, {turn}");
                    (kind, reply)
                }
                _ => {
                    let (bytes, kind, reply) = session.fetch("LIST");
                    assert!(e2e::ftp::lines_of(&bytes).len() > turn / 3, "{version:?}, {turn}");
                    (kind, reply)
                }
            };
            assert_eq!((reply.code, kind), (226, Some(HandshakeKind::Resumed)), "{version:?}, {turn}: {reply:?}");
        }
    }
}

#[test]
fn t01_a_client_that_only_uploads_gets_its_tickets_at_the_end_of_each_upload() {
    let Some(mut site) = site("T01, uploads") else { return };
    site.set("data_resumption = \"required\"");
    let daemon = Daemon::start(site);
    let mut session = Session::login(&daemon.site, "alice", &BOTH);
    for turn in 0..MANY {
        let (kind, reply) = session.store(&format!("STOR f{turn}"), b"content");
        assert_eq!((reply.code, kind), (226, Some(HandshakeKind::Resumed)), "{turn}: {reply:?}");
    }
}

#[test]
fn t02_a_data_connection_with_a_ticket_of_another_session_moves_no_byte() {
    for policy in ["required", "if-offered"] {
        let Some(mut site) = site("T02") else { return };
        site.set(&format!("data_resumption = \"{policy}\""));
        let daemon = Daemon::start(site);
        daemon.put("bob", "secret", b"for bob alone");
        for version in BOTH {
            let alice = Session::login(&daemon.site, "alice", &[version]);
            let mut bob = Session::login(&daemon.site, "bob", &[version]);

            let mut stolen = over(&alice.config, bob.control.passive());
            bob.control.expect("RETR secret", &[150, 125]);
            let mut got = Vec::new();
            let told = stolen.read_to_end(&mut got).expect_err("it is refused");
            assert_eq!(got, b"", "{policy}, {version:?}");
            assert!(told.to_string().contains("fatal alert: HandshakeFailure"), "{policy}, {version:?}: {told}");
            let reply = bob.control.expect_reply(&[522]);
            assert!(reply.text().contains("resume"), "{reply:?}");

            // Nor does it feed an upload.
            let mut stolen = over(&alice.config, bob.control.passive());
            bob.control.expect("STOR secret", &[150, 125]);
            let _ = std::io::Write::write_all(&mut stolen, b"poison");
            drop(stolen);
            bob.control.expect_reply(&[522]);
            assert_eq!(fs::read(daemon.home("bob", "secret")).expect("read"), b"for bob alone", "{policy}");

            let (bytes, kind, reply) = bob.fetch("RETR secret");
            assert_eq!((&bytes[..], kind, reply.code), (&b"for bob alone"[..], Some(HandshakeKind::Resumed), 226));
        }
    }
}

#[test]
fn where_resumption_is_required_a_data_connection_without_a_ticket_is_refused_with_the_reason() {
    let Some(mut site) = site("no ticket") else { return };
    site.set("data_resumption = \"required\"");
    let daemon = Daemon::start(site);
    let kept = daemon.put("alice", "kept", b"as it was");
    for version in BOTH {
        let mut session = Session::login(&daemon.site, "alice", &[version]);
        let stranger = super::wire::trusting(&daemon.site, &[version]);
        let mut data = over(&stranger, session.control.passive());
        session.control.expect("STOR kept", &[150, 125]);
        let _ = std::io::Write::write_all(&mut data, b"poison");
        drop(data);
        let reply = session.control.expect_reply(&[522]);
        assert!(reply.text().contains("does not resume the TLS session of the control connection"), "{reply:?}");
        assert_eq!(fs::read(&kept).expect("read"), b"as it was");
        session.control.in_step();
    }
}

#[test]
fn a_ticket_opens_no_control_connection_of_another_session() {
    let Some(site) = site("tickets on control connections") else { return };
    let daemon = Daemon::start(site);
    for version in BOTH {
        let alice = Session::login(&daemon.site, "alice", &[version]);
        let mut socket = Client::connect(daemon.address());
        socket.expect("AUTH TLS", &[234]);
        let mut wire = over(&alice.config, socket.socket().try_clone().expect("dup"));
        super::wire::shake(&mut wire).expect("a handshake");
        assert_eq!(wire.conn.handshake_kind(), Some(HandshakeKind::Full), "{version:?}");
    }
}

#[test]
fn openssl_s_client_on_a_data_connection_is_refused_by_an_alert_it_names() {
    let Some(mut site) = site("openssl on a data connection") else { return };
    site.set("data_resumption = \"required\"");
    let daemon = Daemon::start(site);
    daemon.put("alice", "f", b"content");
    for (version, option) in BOTH.into_iter().zip(["-tls1_2", "-tls1_3"]) {
        let mut session = Session::login(&daemon.site, "alice", &[version]);
        let address = session.control.epsv();
        let child = Command::new("openssl")
            .args(["s_client", option, "-connect", &address.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl");
        session.control.expect("RETR f", &[150, 125]);
        let reply = session.control.expect_reply(&[522]);
        assert!(reply.text().contains("does not resume"), "{reply:?}");
        let output = child.wait_with_output().expect("wait");
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        assert!(said.contains("alert handshake failure") && !said.contains("content"), "{option}: {said}");
    }
}
