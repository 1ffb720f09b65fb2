//! Brokers that fail or lie cost their own sessions, and nobody else's.

use std::{
    io::{Read, Write},
    os::fd::AsFd,
};

use child_ipc::{
    link::{
        monitor_worker::FromWorker,
        worker_broker::{Answer, Attrs, Done, Kind, Op, Opened, Storage, Why, WriteMode},
    },
    types::BrokerId,
};

use crate::harness::{World, answer, file, receive};

const OPENED: Done =
    Done::Opened(Opened { size: 0, created: true, chosen: None, storage: Storage::MEMORY, staged: None });

#[test]
fn an_answer_to_no_question_ends_that_brokers_sessions_only() {
    let mut world = World::new();
    let (mut victim, session, mut liar) = world.logged_in(BrokerId(1));
    let (mut other, _, mut honest) = world.logged_in(BrokerId(2));
    victim.send("DELE f");
    let ask = receive(&mut liar).record;
    liar.send(&Answer { tag: ask.tag.wrapping_add(1), outcome: Ok(Done::Nothing) }, &[]).unwrap();
    assert_eq!(victim.reply(), "451 The service for this account has stopped.");
    assert_eq!(victim.reply(), "421 Log in again.");
    assert!(matches!(world.heard().record, FromWorker::SessionEnded(ended) if ended == session));
    other.send("DELE f");
    answer(&mut honest, Ok(Done::Nothing), &[]);
    assert!(other.reply().starts_with("250 "));
}

#[test]
fn an_answer_of_another_kind_is_a_local_error_and_the_session_goes_on() {
    let mut world = World::new();
    let (mut client, _, mut broker) = world.logged_in(BrokerId(1));
    client.send("SIZE f");
    answer(&mut broker, Ok(Done::Nothing), &[]);
    assert_eq!(client.reply(), "451 Local error.");
    client.send("SIZE f");
    answer(&mut broker, Err(Why::NotFound), &[]);
    assert_eq!(client.reply(), "550 No such file or directory.");
}

#[test]
fn the_end_of_a_broker_is_told_to_its_sessions() {
    let mut world = World::new();
    let (mut idle, first, broker) = world.logged_in(BrokerId(1));
    let (mut second, check) = world.asking();
    world.grant(check.session, BrokerId(1));
    assert_eq!(second.reply(), "230 Logged in.");
    drop(broker);
    for client in [&mut idle, &mut second] {
        assert_eq!(client.reply(), "421 The service for this account has stopped; log in again.");
    }
    let ended = [world.heard().record, world.heard().record];
    assert!(ended.iter().any(|record| matches!(record, FromWorker::SessionEnded(session) if *session == first)));
}

#[test]
fn a_grant_without_a_link_is_given_back() {
    let mut world = World::new();
    let (mut client, check) = world.asking();
    world.grant(check.session, BrokerId(9));
    assert_eq!(client.reply(), "421 This account cannot be served now; try again later.");
    assert!(matches!(world.heard().record, FromWorker::SessionEnded(session) if session == check.session));
}

#[test]
fn a_link_that_is_replaced_takes_nobody_along() {
    let mut world = World::new();
    let (mut client, _, old) = world.logged_in(BrokerId(1));
    assert!(client.told("QUIT").starts_with("221 "));
    let (mut client, _, mut new) = world.logged_in(BrokerId(1));
    drop(old);
    client.send("DELE f");
    answer(&mut new, Ok(Done::Nothing), &[]);
    assert!(client.reply().starts_with("250 "));
}

#[test]
fn questions_of_many_sessions_are_open_at_once_and_answers_find_their_way() {
    let mut world = World::new();
    let (first, _, mut broker) = world.logged_in(BrokerId(1));
    let mut clients = vec![first];
    for _ in 0..20 {
        let (mut client, check) = world.asking();
        world.grant(check.session, BrokerId(1));
        assert_eq!(client.reply(), "230 Logged in.");
        clients.push(client);
    }
    for client in &mut clients {
        assert!(client.told("TYPE I").starts_with("200 "));
    }
    for (n, client) in clients.iter_mut().enumerate() {
        client.send(&format!("SIZE {n}"));
    }
    let asks: Vec<_> = clients.iter().map(|_| receive(&mut broker).record).collect();
    for ask in asks {
        let Op::Stat(path) = ask.op else { panic!("Stat was expected") };
        let size = String::from_utf8_lossy(&path.as_bytes()[1..]).parse().unwrap();
        let attrs = Attrs { kind: Kind::File, size, modified: 0, mode: 0o644 };
        broker.send(&Answer { tag: ask.tag, outcome: Ok(Done::Stat(attrs)) }, &[]).unwrap();
    }
    for (n, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.reply(), format!("213 {n}"));
    }
}

#[test]
fn an_upload_goes_where_the_broker_opened_and_a_full_disk_is_told() {
    let mut world = World::new();
    let (mut client, _, mut broker) = world.logged_in(BrokerId(1));
    client.send("TYPE I");
    assert!(client.reply().starts_with("200 "));
    client.send("EPSV");
    world.give_passive(1);
    let port = client.reply();
    let store = file(b"");
    let mut data = client.dial(&port);
    client.send("STOR up");
    let ask = answer(&mut broker, Ok(OPENED), &[&store]);
    assert!(matches!(ask.op, Op::OpenWrite { mode: WriteMode::Replace, .. }));
    assert!(client.reply().starts_with("150 "));
    data.write_all(&[7; 300_000]).unwrap();
    drop(data);
    assert_eq!(client.reply(), "226 Transfer complete.");
    assert_eq!(rustix::fs::fstat(&store).unwrap().st_size, 300_000);
    let full = rustix::fs::open("/dev/full", rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty()).unwrap();
    let mut data = client.data();
    client.send("STOR up");
    answer(&mut broker, Ok(OPENED), &[&full]);
    assert!(client.reply().starts_with("150 "));
    let _ = data.write_all(&[7; 300_000]);
    assert_eq!(client.reply(), "452 No space left; the transfer is not complete.");
    assert!(client.told("NOOP").starts_with("200 "));
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_is_not_called_complete() {
    let mut world = World::new();
    let (mut client, _, mut broker) = world.logged_in(BrokerId(1));
    client.send("EPSV");
    world.give_passive(1);
    let port = client.reply();
    for kind in ["TYPE I", "TYPE A"] {
        assert!(client.told(kind).starts_with("200 "));
        assert_eq!(client.told("EPSV"), port);
        let mut data = client.dial(&port);
        client.send("RETR f");
        let opened =
            Done::Opened(Opened { size: 10, created: false, chosen: None, storage: Storage::MEMORY, staged: None });
        answer(&mut broker, Ok(opened), &[&file(b"short")]);
        assert!(client.reply().starts_with("150 "));
        let mut got = String::new();
        data.read_to_string(&mut got).unwrap();
        assert_eq!(got, "short");
        assert!(client.reply().starts_with("451 "));
    }
}

#[test]
fn text_is_converted_both_ways_whatever_the_pieces() {
    let mut world = World::new();
    let (mut client, _, mut broker) = world.logged_in(BrokerId(1));
    client.send("EPSV");
    world.give_passive(1);
    let port = client.reply();
    let lines = "line\n".repeat(400_000);
    let mut data = client.dial(&port);
    client.send("RETR f");
    let opened = Done::Opened(Opened {
        size: lines.len() as u64,
        created: false,
        chosen: None,
        storage: Storage::MEMORY,
        staged: None,
    });
    answer(&mut broker, Ok(opened), &[&file(lines.as_bytes())]);
    assert!(client.reply().starts_with("150 "));
    let mut got = Vec::new();
    data.read_to_end(&mut got).unwrap();
    assert!(got == lines.replace('\n', "\r\n").as_bytes());
    assert_eq!(client.reply(), "226 Transfer complete.");
    let store = file(b"");
    let mut data = client.data();
    client.send("STOR f");
    answer(&mut broker, Ok(OPENED), &[&store]);
    assert!(client.reply().starts_with("150 "));
    for piece in got.chunks(65_521) {
        data.write_all(piece).unwrap();
    }
    drop(data);
    assert_eq!(client.reply(), "226 Transfer complete.");
    let mut stored = vec![0; lines.len() + 1];
    assert_eq!(rustix::io::pread(store.as_fd(), &mut stored, 0).unwrap(), lines.len());
    assert!(stored[..lines.len()] == *lines.as_bytes());
}
