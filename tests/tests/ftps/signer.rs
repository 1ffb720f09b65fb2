//! A signer that is slow or gone: handshakes fail in bounded time, sessions that are there go on, and it heals.

use std::{
    fs,
    time::{Duration, Instant},
};

use e2e::{Daemon, ftp::Client, until};
use nix::sys::signal::Signal;

use super::wire::{BOTH, Session, over, shake, trusting};
use crate::site;

/// A handshake behind AUTH TLS with a new client, which needs a signature; how it went, and how long it took.
fn attempt(daemon: &Daemon) -> (std::io::Result<()>, Duration) {
    let mut client = Client::connect(daemon.address());
    client.expect("AUTH TLS", &[234]);
    let mut wire = over(&trusting(&daemon.site, &BOTH), client.socket().try_clone().expect("dup"));
    let began = Instant::now();
    (shake(&mut wire), began.elapsed())
}

/// One worker, a session in clear, and one under TLS.
fn place(scenario: &str) -> Option<(Daemon, Client, Session)> {
    let mut site = site(scenario)?;
    site.set("workers = 1");
    let daemon = Daemon::start(site);
    let (clear, secured) = (daemon.login("alice"), Session::login(&daemon.site, "alice", &BOTH));
    Some((daemon, clear, secured))
}

#[test]
fn a_signer_that_stops_fails_handshakes_in_bounded_time_and_sessions_go_on() {
    let Some((daemon, mut clear, mut secured)) = place("authd is stopped") else { return };
    let content = e2e::tree::content(300_000, 5);
    let authd = daemon.authd();
    authd.halt();
    until("authd is stopped", || authd.status()["State"].starts_with('T').then_some(()));
    for _ in 0..3 {
        let (failed, took) = attempt(&daemon);
        assert!(failed.is_err() && took < Duration::from_secs(4), "{failed:?} after {took:?}");
        let began = Instant::now();
        clear.in_step();
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }
    daemon.logged(&["TLS: ", "authd"]);
    clear.stored("STOR clear", &content);
    // A resumed handshake needs no signature.
    let (kind, reply) = secured.store("STOR secured", &content);
    assert_eq!((kind, reply.code), (Some(rustls::HandshakeKind::Resumed), 226));
    for name in ["clear", "secured"] {
        assert!(fs::read(daemon.home("alice", name)).expect("read") == content);
    }
    daemon.authd().signal(Signal::SIGCONT);
    until("handshakes work again", || attempt(&daemon).0.ok());
    Session::login(&daemon.site, "bob", &BOTH).control.in_step();
}

#[test]
fn a_signer_that_dies_is_replaced_and_handshakes_work_again() {
    let Some((daemon, mut clear, mut secured)) = place("authd is killed") else { return };
    for _ in 0..2 {
        let before = daemon.authd();
        before.signal(Signal::SIGKILL);
        let began = Instant::now();
        until("handshakes work again", || attempt(&daemon).0.ok());
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert_ne!(daemon.authd(), before);
        clear.in_step();
        let (_, reply) = secured.store("STOR secured", b"content");
        assert_eq!(reply.code, 226);
        Session::login(&daemon.site, "bob", &BOTH).control.in_step();
    }
}
