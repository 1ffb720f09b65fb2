//! What an account demands of TLS, as authd and the monitor have it, and what settings have said when a handshake began.

use child_ipc::{
    link::{
        monitor_worker::{FromWorker, ToWorker},
        settings::{FtpSettings, Require, Tls, pack},
    },
    types::BrokerId,
};
use rustls::version::{TLS12, TLS13};

use crate::{
    harness::settings,
    keys,
    secured::{secured, world},
};

#[test]
fn authd_is_told_whether_a_client_is_under_tls() {
    let (mut world, config) = (world(Tls::default()), keys::trusting(&[&TLS12, &TLS13]));
    let (_clear, check) = world.asking();
    assert!(!check.secured);
    let mut client = world.client();
    assert_eq!(client.told("AUTH TLS"), "234 Begin with TLS.");
    let (_client, check) = world.asking_as(secured(client, &config));
    assert!(check.secured);
}

#[test]
fn an_account_that_demands_tls_is_nobodys_in_clear_whoever_grants_it() {
    let mut world = world(Tls::default());
    for require in [Require::Login, Require::Data] {
        let (mut client, check) = world.asking();
        let _end = world.grant_that_requires(check.session, BrokerId(1), require.number());
        assert!(client.reply().starts_with("421 "));
        let heard = world.heard().record;
        assert!(matches!(heard, FromWorker::SessionEnded(session) if session == check.session), "{heard:?}");
    }
}

#[test]
fn what_an_account_or_the_settings_of_its_handshake_demand_holds_until_it_logs_out() {
    let (mut world, config) = (world(Tls::default()), keys::trusting(&[&TLS12, &TLS13]));
    let mut client = world.client();
    assert_eq!(client.told("AUTH TLS"), "234 Begin with TLS.");
    let (mut client, _, _broker) = world.logged_in_as(secured(client, &config), BrokerId(1));
    assert!(client.told("PBSZ 0").starts_with("200 "));
    assert!(client.told("PROT C").starts_with("200 "));
    let (mut client, check) = world.asking_as(client);
    world.heard();
    let _broker = world.grant_that_requires(check.session, BrokerId(1), Require::Data.number());
    assert_eq!(client.reply(), "230 Logged in.");
    assert!(client.told("PROT C").starts_with("534 "));
    client.send("EPSV");
    world.give_passive(1);
    assert!(client.reply().starts_with("229 "));
    assert!(client.told("LIST").starts_with("521 "));
    // Who is nobody again is under the settings alone.
    assert_eq!(client.told("USER v"), "331 Password, please.");
    assert!(client.told("PROT C").starts_with("200 "));

    // Settings without TLS at all: what holds for the session is what held at its handshake.
    let strict = Tls { require: Require::Data, ..Tls::default() };
    let told = |tls| ToWorker::Settings(pack(&FtpSettings { tls, ..settings() }).unwrap());
    for (tls, prot) in [(Some(strict), "534 "), (None, "200 ")] {
        world.monitor.send(&told(tls), &[]).unwrap();
        until(|| client.told("PROT C").starts_with(prot));
    }
}

/// Settings arrive when they do.
fn until(mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !holds() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
