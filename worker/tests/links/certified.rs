//! Certificates of clients, as authd hears of them.

use child_ipc::{
    link::{
        settings::Tls,
        worker_authd::{Check, Outcome, ToAuthd},
    },
    types::BrokerId,
};
use rustls::version::{TLS12, TLS13};

use crate::{
    harness::{World, receive},
    keys,
    secured::{secured, world},
};

fn asking() -> World {
    world(Tls { asks_certificates: true, ..Tls::default() })
}

fn check(world: &mut World) -> Check {
    let ToAuthd::Check(check) = receive(&mut world.authd).record else { panic!("a check was expected") };
    check
}

#[test]
fn authd_is_asked_about_a_certificate_at_user_and_with_the_password_until_somebody_is_logged_in() {
    let (mut world, (config, der)) = (asking(), keys::showing(&[&TLS13], 1));
    let mut client = world.client();
    assert_eq!(client.told("AUTH TLS"), "234 Begin with TLS.");
    let mut client = secured(client, &config);
    client.send("USER u");
    let first = check(&mut world);
    assert!(first.password.is_none());
    let shown = first.possession.expect("a certificate");
    assert_eq!(shown.certificate.as_bytes(), der);
    world.verdict(first.session, Outcome::Rejected);
    assert_eq!(client.reply(), "331 Password, please.");
    client.send("PASS wrong");
    let second = check(&mut world);
    assert_eq!(second.possession.as_ref(), Some(&shown));
    assert!(second.password.is_some() && second.session != first.session);
    world.verdict(second.session, Outcome::Rejected);
    assert_eq!(client.reply(), "530 Login incorrect.");
    client.send("USER u");
    let third = check(&mut world);
    assert_eq!(third.possession, Some(shown));
    let _link = world.grant_with_link(third.session, BrokerId(1));
    assert_eq!(client.reply(), "232 Logged in by the certificate.");
    // It has been spent.
    assert_eq!(client.told("USER u"), "331 Password, please.");
    client.send("PASS secret");
    assert_eq!(check(&mut world).possession, None);
}

#[test]
fn without_a_certificate_that_counts_the_password_is_asked_for_at_once() {
    let settings = [
        (true, keys::trusting(&[&TLS13])),
        (true, keys::showing(&[&TLS12], 1).0),
        (false, keys::showing(&[&TLS13], 1).0),
    ];
    for (asks_certificates, config) in settings {
        let mut world = world(Tls { asks_certificates, ..Tls::default() });
        let mut client = world.client();
        assert_eq!(client.told("AUTH TLS"), "234 Begin with TLS.");
        let (_client, check) = world.asking_as(secured(client, &config));
        assert_eq!(check.possession, None);
    }
}

#[test]
fn a_certificate_longer_than_any_handshake_ends_its_client_and_nobody_else() {
    let mut world = asking();
    let mut client = world.client();
    assert_eq!(client.told("AUTH TLS"), "234 Begin with TLS.");
    let mut client = secured(client, &keys::showing(&[&TLS13], 3000).0);
    assert!(client.is_closed());
    let mut other = world.client();
    assert_eq!(other.told("AUTH TLS"), "234 Begin with TLS.");
    let _ = world.asking_as(secured(other, &keys::trusting(&[&TLS13])));
}
