//! What the monitor gives and takes: passive sockets, connections back, the end.

use std::{io::Read, net::TcpListener, os::fd::AsFd};

use child_ipc::{
    link::{
        log::Level,
        monitor_worker::{Connecting, FromWorker, ToWorker},
        settings::{FtpSettings, pack},
        worker_broker::{Done, Opened, Storage},
    },
    types::BrokerId,
};

use crate::harness::{World, answer, file, receive, settings};

#[test]
fn one_passive_socket_serves_one_transfer_after_the_other() {
    let mut world = World::new();
    let (mut client, _, mut broker) = world.logged_in(BrokerId(1));
    client.send("EPSV");
    world.give_passive(1);
    let first = client.reply();
    for _ in 0..3 {
        assert_eq!(client.told("EPSV"), first);
        let mut data = client.dial(&first);
        client.send("RETR f");
        answer(
            &mut broker,
            Ok(Done::Opened(Opened { size: 5, created: false, chosen: None, storage: Storage::MEMORY, staged: None })),
            &[&file(b"hello")],
        );
        assert!(client.reply().starts_with("150 "));
        let mut got = String::new();
        data.read_to_string(&mut got).unwrap();
        assert_eq!(got, "hello");
        assert_eq!(client.reply(), "226 Transfer complete.");
    }
}

#[test]
fn who_connected_before_the_port_was_told_again_is_dropped() {
    let mut world = World::new();
    let (mut client, _, mut broker) = world.logged_in(BrokerId(1));
    client.send("EPSV");
    world.give_passive(1);
    let port = client.reply();
    let mut early = client.dial(&port);
    assert_eq!(client.told("EPSV"), port);
    let mut data = client.dial(&port);
    client.send("NLST");
    answer(&mut broker, Ok(Done::Listing { bytes: 3, directory: true }), &[&file(b"f\r\n")]);
    let (mut got, mut nothing) = (String::new(), String::new());
    data.read_to_string(&mut got).unwrap();
    assert_eq!(got, "f\r\n");
    assert!(early.read_to_string(&mut nothing).unwrap_or(0) == 0);
}

#[test]
fn when_the_range_is_used_up_the_client_is_told_425() {
    let mut world = World::new();
    let (mut client, _, _broker) = world.logged_in(BrokerId(1));
    client.send("EPSV");
    world.give_passive(0);
    assert_eq!(client.reply(), "425 No passive port is free now; try again.");
    client.send("EPSV");
    world.give_passive(1);
    assert!(client.reply().starts_with("229 "));
}

#[test]
fn active_mode_hands_the_control_connection_itself_to_the_monitor() {
    let mut world = World::new();
    let (mut client, session, mut broker) = world.logged_in(BrokerId(1));
    let back = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = back.local_addr().unwrap().port();
    for turn in 0..2 {
        assert!(client.told(&format!("EPRT |1|127.0.0.1|{port}|")).starts_with("200 "));
        client.send("RETR f");
        let heard = world.heard();
        let FromWorker::ConnectBack(ask) = heard.record else { panic!("ConnectBack was expected") };
        assert_eq!((ask.session, ask.port), (session, port));
        let peer = rustix::net::getpeername(&heard.fds[0]).unwrap();
        assert!(std::net::SocketAddr::try_from(peer.unwrap()).unwrap().ip().is_loopback());
        answer(
            &mut broker,
            Ok(Done::Opened(Opened { size: 2, created: false, chosen: None, storage: Storage::MEMORY, staged: None })),
            &[&file(b"hi")],
        );
        assert!(client.reply().starts_with("150 "));
        if turn == 0 {
            let refused = ToWorker::ConnectBack(Connecting { session, errno: 111 });
            world.monitor.send(&refused, &[]).unwrap();
            assert_eq!(client.reply(), "425 No data connection.");
            continue;
        }
        let data = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        data.set_nonblocking(true).unwrap();
        world.monitor.send(&ToWorker::ConnectBack(Connecting { session, errno: 0 }), &[data.as_fd()]).unwrap();
        drop(data);
        let mut got = String::new();
        back.accept().unwrap().0.read_to_string(&mut got).unwrap();
        assert_eq!(got, "hi");
        assert_eq!(client.reply(), "226 Transfer complete.");
    }
}

#[test]
fn the_end_of_a_session_is_told_once_whatever_ends_it() {
    let mut world = World::new();
    let (mut client, quit, _link) = world.logged_in(BrokerId(1));
    assert!(client.told("QUIT").starts_with("221 "));
    assert!(matches!(world.heard().record, FromWorker::SessionEnded(session) if session == quit));
    let (mut client, rein, _link) = world.logged_in(BrokerId(2));
    assert!(client.told("REIN").starts_with("220 "));
    assert!(matches!(world.heard().record, FromWorker::SessionEnded(session) if session == rein));
    assert!(client.told("PWD").starts_with("530 "));
    let (mut client, kicked, _link) = world.logged_in(BrokerId(3));
    world.monitor.send(&ToWorker::Kick(kicked), &[]).unwrap();
    assert_eq!(client.reply(), "421 Closed by the administrator.");
    assert!(matches!(world.heard().record, FromWorker::SessionEnded(session) if session == kicked));
}

#[test]
fn more_clients_than_allowed_are_told_so() {
    let mut world = World::with(FtpSettings { max_sessions: 1, ..settings() });
    let (mut client, _, _link) = world.logged_in(BrokerId(1));
    let mut second = world.raw_client();
    assert_eq!(second.reply(), "421 Too many clients; try again later.");
    assert!(second.is_closed());
    assert!(client.told("NOOP").starts_with("200 "));
}

#[test]
fn at_the_end_everybody_is_told_and_the_process_ends_well() {
    let mut world = World::new();
    let (mut logged_in, _, _link) = world.logged_in(BrokerId(1));
    let mut silent = world.client();
    world.monitor.send(&ToWorker::Stop, &[]).unwrap();
    assert_eq!(logged_in.reply(), "421 The server stops.");
    assert_eq!(silent.reply(), "421 The server stops.");
    assert!(world.wait().success());
}

#[test]
fn a_worker_without_monitor_ends() {
    let world = World::new();
    assert!(!world.end().success());
}

/// Waits for a line of the log; it lingers a moment, and SessionEnded comes before it.
fn hear_line(world: &mut World, event: &str) {
    while !world.log.iter().any(|line| line.starts_with(event)) {
        if let FromWorker::Lines(lines) = receive(&mut world.monitor).record {
            world.note(&lines);
        }
    }
}

#[test]
fn lines_below_the_level_are_not_sent_and_a_reload_changes_the_level() {
    let at = |log_level| FtpSettings { log_level, ..settings() };
    let mut world = World::with(at(Level::Warning));
    let (mut client, _, mut broker) = world.logged_in(BrokerId(1));
    client.send("DELE before");
    answer(&mut broker, Ok(Done::Nothing), &[]);
    assert!(client.reply().starts_with("250 "));
    let (mut other, kicked, _link) = world.logged_in(BrokerId(2));
    world.monitor.send(&ToWorker::Settings(pack(&at(Level::Info)).unwrap()), &[]).unwrap();
    world.monitor.send(&ToWorker::Kick(kicked), &[]).unwrap();
    // So the settings, which came before, have arrived.
    assert!(other.reply().starts_with("421 "));
    client.send("DELE after");
    answer(&mut broker, Ok(Done::Nothing), &[]);
    assert!(client.reply().starts_with("250 "));
    hear_line(&mut world, "Change");
    let log = world.log.join("\n");
    assert!(log.contains("op=DELE path=\"/after\""), "{log}");
    assert!(!world.log.iter().any(|line| line.starts_with("Connect") || line.starts_with("Login")), "{log}");
    assert!(!log.contains("/before"), "{log}");
}

#[test]
fn the_log_tells_who_came_and_what_was_moved() {
    let mut world = World::new();
    let (mut client, _, mut broker) = world.logged_in(BrokerId(1));
    client.send("DELE a b\"c\u{1b}");
    answer(&mut broker, Ok(Done::Nothing), &[]);
    assert!(client.reply().starts_with("250 "));
    client.told("QUIT");
    hear_line(&mut world, "Disconnect");
    let log = world.log.join("\n");
    assert!(log.contains("Connect peer=127.0.0.1:"), "{log}");
    assert!(log.contains("account=\"u\""), "{log}");
    assert!(log.contains("op=DELE path=\"/a b\\\"c\\x1b\""), "{log}");
    assert!(!log.contains("secret"), "{log}");
}
