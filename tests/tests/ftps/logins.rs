//! Logging in and protecting (T33, T34): AUTH after a login, PBSZ and PROT in any order, and ends that disagree.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use e2e::Daemon;

use super::wire::{BOTH, Session, trusting};
use crate::site;

#[test]
fn t33_auth_does_not_keep_a_login_in_clear() {
    let Some(site) = site("T33, AUTH") else { return };
    let daemon = Daemon::start(site);
    let mut client = daemon.login("alice");
    if client.ask("AUTH TLS").is(5) {
        // Refused: the session goes on as it was.
        client.list("LIST");
        return;
    }
    let config = trusting(&daemon.site, &BOTH);
    client.over_wire(|socket| Box::new(super::wire::over(&config, socket)));
    client.expect("LIST", &[530]);
}

#[test]
fn t33_a_name_given_in_clear_is_forgotten_by_auth() {
    let Some(site) = site("T33, USER in clear") else { return };
    let daemon = Daemon::start(site);
    let mut client = daemon.connect();
    client.expect("USER alice", &[331]);
    let mut session = Session::begin(client, trusting(&daemon.site, &BOTH));
    session.control.expect("PASS correct horse", &[503]);
    session.control.login("alice", "correct horse");
}

#[test]
fn t34_pbsz_and_prot_are_answered_as_rfc_4217_has_it() {
    let Some(site) = site("T34, order") else { return };
    let daemon = Daemon::start(site);
    for version in BOTH {
        let mut session = Session::begin(daemon.connect(), trusting(&daemon.site, &[version]));
        let control = &mut session.control;
        control.expect("PROT P", &[503]);
        let reply = control.expect("PBSZ 4096", &[200]);
        assert!(reply.text().contains("PBSZ=0"), "{reply:?}");
        control.expect("PBSZ 0", &[200]);
        control.expect("PROT S", &[504, 536]);
        control.expect("PROT E", &[504, 536]);
        control.expect("PROT P", &[200]);
        // Said before USER, it holds after it.
        control.login("alice", "correct horse");
        let (_, reply) = session.store("STOR f", b"content");
        assert_eq!(reply.code, 226);
    }
    let mut clear = daemon.connect();
    clear.refused("PBSZ 0");
    clear.refused("PROT P");
}

#[test]
fn t34_where_data_must_be_protected_prot_c_moves_nothing() {
    let Some(mut site) = site("T34, required") else { return };
    site.set("tls_required = \"data\"");
    let daemon = Daemon::start(site);
    daemon.connect().refused("USER alice");
    let mut session = Session::begin(daemon.connect(), trusting(&daemon.site, &BOTH));
    session.control.login("alice", "correct horse");
    for line in ["LIST", "STOR f", "RETR f"] {
        let data = session.control.passive();
        session.control.expect(line, &[521, 522, 550]);
        drop(data);
    }
    assert!(!daemon.home("alice", "f").exists());
    session.protect();
    assert_eq!(session.fetch("LIST").2.code, 226);
}

#[test]
fn t34_ends_that_disagree_about_protection_are_told_so_in_seconds_and_go_on() {
    let Some(site) = site("T34, disagreement") else { return };
    let daemon = Daemon::start(site);
    for version in BOTH {
        let mut session = Session::login(&daemon.site, "alice", &[version]);
        let began = Instant::now();
        let mut data = session.control.passive();
        session.control.expect("STOR f", &[150, 125]);
        data.write_all(b"in clear, though PROT P was said").expect("send");
        drop(data);
        session.control.expect_reply(&[425, 426, 522]);

        session.control.expect("PROT C", &[200]);
        let mut data = session.data();
        session.control.expect("STOR f", &[150, 125]);
        let _ = data.write_all(b"under TLS, though PROT C was said");
        drop(data);
        session.control.expect_reply(&[425, 426, 522]);
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());

        session.control.stored("STOR f", b"in clear");
        session.control.expect("PROT P", &[200]);
        assert_eq!(session.store("STOR f", b"secured").1.code, 226);
        assert_eq!(std::fs::read(daemon.home("alice", "f")).expect("read"), b"secured");
    }
}
