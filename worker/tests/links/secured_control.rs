//! TLS on control connections (RFC 4217), with real clients: what is in clear, lines and records, ends, what stays in memory.

use std::{
    io::{Read, Write},
    time::Duration,
};

use child_ipc::{
    link::{
        monitor_worker::ToWorker,
        settings::{FtpSettings, Require, Tls, pack},
        worker_authd::ToAuthd,
        worker_broker::Storage,
    },
    types::BrokerId,
};

use crate::{
    harness::{World, answer, file, receive, settings},
    keys,
    secured::*,
    skip::skipped,
};

#[test]
fn what_was_sent_in_clear_behind_auth_is_not_obeyed() {
    let (world, config) = (world(required()), keys::trusting(&BOTH));
    let mut client = world.client();
    client.write(b"AUTH TLS\r\nUSER intruder\r\nPBSZ 0\r\nNOO");
    assert_eq!(client.reply(), "234 Begin with TLS.");
    let mut client = secured(client, &config);
    assert_eq!(client.told("PASS secret"), "503 USER comes first.");
    assert_eq!(client.told("PROT P"), "503 PBSZ 0 comes first.");
}

#[test]
fn lines_in_one_record_or_many_are_answered_in_turn_and_quit_ends_with_close_notify() {
    let (world, config) = (world(required()), keys::trusting(&BOTH));
    let mut client = world.client();
    client.told("AUTH TLS");
    let mut client = secured(client, &config);
    let lines = "NOOP\r\n".repeat(20_000);
    for piece in lines.as_bytes().chunks(50_001) {
        client.write(piece);
    }
    for _ in 0..20_000 {
        assert!(client.reply().starts_with("200 "));
    }
    client.write(b"QU");
    client.write(b"IT\r\n");
    assert!(client.reply().starts_with("221 "));
    assert!(client.is_closed());
}

#[test]
fn on_an_implicit_listener_the_greeting_follows_the_handshake_and_others_are_closed() {
    let config = keys::trusting(&BOTH);
    let mut world = world(required());
    let tls = Some(Tls { implicit: vec![world.address], require: Require::Data, ..Tls::default() });
    world.monitor.send(&ToWorker::Settings(pack(&FtpSettings { tls, ..settings() }).unwrap()), &[]).unwrap();
    // The settings are there when what was sent behind them is.
    world.replace_authd();
    certify(&mut world);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let mut client = loop {
        let raw = world.raw_client();
        raw.socket().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let greeted = raw.socket().peek(&mut [0; 1]).is_ok();
        raw.socket().set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        if !greeted {
            break secured(raw, &config);
        }
        assert!(std::time::Instant::now() < deadline);
    };
    assert_eq!(client.reply(), "220 test");
    assert_eq!(client.told("AUTH TLS"), "503 TLS is on already.");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10], &[0; 100]] {
        let mut other = world.raw_client().socket().try_clone().unwrap();
        other.write_all(bytes).unwrap();
        let mut got = Vec::new();
        let _ = other.read_to_end(&mut got);
        assert!(got.len() <= 7, "an alert at most: {got:?}");
    }
    let (mut client, _, _broker) = world.logged_in_as(client, BrokerId(1));
    client.send("EPSV");
    world.give_passive(1);
    assert!(client.reply().starts_with("229 "));
    assert!(client.told("LIST").starts_with("521 "));
}

#[test]
fn handshakes_that_nobody_finishes_are_ended_in_seconds_and_delay_nobody() {
    let (mut world, config) = (world(required()), keys::trusting(&BOTH));
    let (mut client, mut broker) = protected(&mut world, &config, 1);
    let mut half = world.client();
    half.told("AUTH TLS");
    half.write(b"\x16\x03\x01\x02");
    let silent = port(&mut world, &mut client);
    client.send("RETR f");
    answer(&mut broker, opened(2, Storage::MEMORY), &[&file(b"hi")]);
    assert!(client.reply().starts_with("150 "));
    let mut other = world.client();
    assert!(other.told("NOOP").starts_with("200 "));
    for socket in [client.socket(), half.socket()] {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    assert_eq!(client.reply(), "522 No TLS on the data connection: its handshake is not finished in time.");
    assert!(half.is_closed());
    drop(silent);
    // The passive socket of before has gone back meanwhile.
    let data = wire(&config, port(&mut world, &mut client));
    assert_eq!(fetch(&mut client, &mut broker, data, b"hi", Storage::MEMORY), b"hi");
}

#[test]
fn no_password_stays_in_memory() {
    let passwords =
        ["correct-horse-battery-staple".to_owned(), "secret-that-is-short".to_owned(), "0123456789abcdef".repeat(20)];
    for version in BOTH {
        let (mut world, config) = (world(required()), keys::trusting(&[version]));
        let mut client = world.client();
        client.told("AUTH TLS");
        let (mut client, mut links) = (secured(client, &config), Vec::new());
        for (turn, password) in passwords.iter().enumerate() {
            let login = format!("{turn}-{password}-{turn}");
            assert!(client.told("USER u").starts_with("331 "));
            client.send(&format!("PASS {login}"));
            let ToAuthd::Check(check) = receive(&mut world.authd).record else { panic!("a check was expected") };
            assert_eq!(check.password.unwrap().expose(), login.as_bytes());
            links.push(world.grant_with_link(check.session, BrokerId(u32::try_from(turn).unwrap() + 1)));
            assert!(client.reply().starts_with("230 "));
            // malloc itself writes over the first bytes of what was freed.
            let end = &login.as_bytes()[login.len() / 2..];
            let Some(found) = world.remembers(end) else { return skipped("passwords in memory", "no right to look") };
            assert!(!found, "{login}");
            assert_eq!(world.remembers(b"ftp.example"), Some(true), "what is there is found");
        }
    }
}

#[test]
fn a_session_under_tls_is_told_when_it_is_closed_by_others() {
    let (mut world, config) = (world(required()), keys::trusting(&BOTH));
    let (mut client, _broker) = protected(&mut world, &config, 1);
    let mut half = world.client();
    half.told("AUTH TLS");
    world.monitor.send(&ToWorker::Stop, &[]).unwrap();
    assert_eq!(client.reply(), "421 The server stops.");
    assert!(client.is_closed());
    assert!(half.is_closed());
}

#[test]
fn a_worker_without_certificate_lists_no_tls_and_refuses_it() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(client.told("AUTH TLS"), "504 No security mechanism is offered.");
}
