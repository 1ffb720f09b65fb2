//! Limits that hold over all workers: connections in all and by address (RFC 2577 4 and 9 name the dangers), and what becomes of them
//! when a worker dies, lies, or the configuration changes. The limit by account is in ftp/login.rs.

use std::{
    io::Read,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use e2e::{
    Daemon, Site,
    ftp::{Client, connect_from},
    puppet::Puppet,
    root_or_skip, until,
};
use nix::sys::signal::Signal;

/// A site with these lines in `caisson.toml`.
fn site_with(lines: &[&str]) -> Site {
    let mut site = Site::new();
    for line in lines {
        site.set(line);
    }
    site
}

/// What becomes of connections that are all made at once: those that are greeted, and what the others are told.
fn at_once(connect: impl Fn() -> TcpStream + Sync, number: usize) -> (Vec<Client>, Vec<String>) {
    let barrier = Barrier::new(number);
    let told: Vec<(Client, u16, String)> = thread::scope(|scope| {
        let one = || {
            barrier.wait();
            let mut client = Client::over(connect());
            let reply = client.reply();
            (client, reply.code, reply.text())
        };
        let all: Vec<_> = (0..number).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|client| client.join().expect("a client")).collect()
    });
    let (mut greeted, mut refused) = (Vec::new(), Vec::new());
    for (mut client, code, text) in told {
        match code {
            220 => greeted.push(client),
            421 => {
                assert!(client.ends().is_empty());
                refused.push(text);
            }
            _ => panic!("{code} {text}"),
        }
    }
    (greeted, refused)
}

/// Waits until that many new clients are greeted, and checks that the next one is not.
fn room_for(daemon: &Daemon, number: usize) -> Vec<Client> {
    let mut greeted = Vec::new();
    until("there is room again", || {
        let mut client = Client::connect_silently(daemon.address());
        if client.reply().code == 220 {
            greeted.push(client);
        }
        (greeted.len() == number).then_some(())
    });
    full(daemon, "too many clients");
    greeted
}

/// Checks that a new client is refused in these words.
fn full(daemon: &Daemon, words: &str) {
    let mut client = Client::connect_silently(daemon.address());
    let text = client.expect_reply(&[421]).text();
    assert!(text.to_lowercase().contains(words), "{text}");
    assert!(client.ends().is_empty());
}

/// How many sockets all workers hold.
fn sockets(daemon: &Daemon) -> usize {
    let of = |descriptors: Vec<String>| descriptors.iter().filter(|name| name.starts_with("socket:")).count();
    daemon.workers().into_iter().map(|worker| of(worker.descriptors())).sum()
}

#[test]
fn of_fifty_clients_at_once_exactly_as_many_get_in_as_may() {
    if !root_or_skip("max_sessions") {
        return;
    }
    let daemon = Daemon::start(site_with(&["workers = 3", "max_sessions = 20", "max_sessions_per_address = 0"]));
    let before = sockets(&daemon);
    for _ in 0..10 {
        let (mut greeted, refused) = at_once(|| TcpStream::connect(daemon.address()).expect("connect"), 50);
        assert_eq!((greeted.len(), refused.len()), (20, 30));
        assert!(refused.iter().all(|text| text == "Too many clients; try again later."), "{refused:?}");
        greeted.iter_mut().for_each(Client::in_step);
        greeted.truncate(15);
        greeted.extend(room_for(&daemon, 5));
        greeted.iter_mut().for_each(Client::in_step);
        drop(greeted);
        until("everybody is gone", || (sockets(&daemon) == before).then_some(()));
    }
    daemon.logged(&["limit", "reason=\"max_sessions\"", "peer=127.0.0.1:"]);
}

#[test]
fn an_address_gets_as_many_connections_as_one_may_and_leaves_the_rest_to_others() {
    if !root_or_skip("max_sessions_per_address") {
        return;
    }
    let daemon = Daemon::start(site_with(&["workers = 3", "max_sessions_per_address = 4"]));
    let address = daemon.address();
    let from = |source: &'static str| at_once(move || connect_from(source, address), 20);
    let (one, refused) = from("127.0.0.1");
    assert_eq!((one.len(), refused.len()), (4, 16));
    assert!(refused.iter().all(|text| text == "Too many connections from your address; try again later."));
    let (two, refused) = from("127.0.0.2");
    assert_eq!((two.len(), refused.len()), (4, 16));
    daemon.logged(&["limit", "reason=\"max_sessions_per_address\"", "peer=127.0.0.2:"]);
    drop(one);
    until("127.0.0.1 is greeted again", || {
        (Client::over(connect_from("127.0.0.1", daemon.address())).reply().code == 220).then_some(())
    });
}

#[test]
fn a_shorter_prefix_makes_two_addresses_one_and_a_reload_counts_who_is_there_anew() {
    if !root_or_skip("address_prefix_ipv4") {
        return;
    }
    let mut daemon = Daemon::start(site_with(&["max_sessions_per_address = 3", "address_prefix_ipv4 = 8"]));
    let address = daemon.address();
    let greeted = |source: &str| {
        let mut client = Client::over(connect_from(source, address));
        let code = client.reply().code;
        (code == 220).then_some(client)
    };
    let mut held: Vec<Client> = ["127.0.0.1", "127.0.0.2", "127.9.9.9"].map(|source| greeted(source).unwrap()).into();
    assert!(greeted("127.0.0.3").is_none());
    let reload = |daemon: &mut Daemon, prefix: &str| {
        let reloads = daemon.log().matches("reloaded").count();
        daemon.site.set(prefix);
        daemon.site.write();
        daemon.signal(Signal::SIGHUP);
        until("it has reloaded", || (daemon.log().matches("reloaded").count() > reloads).then_some(()));
    };
    reload(&mut daemon, "address_prefix_ipv4 = 32");
    held.extend(
        until("everybody counts for himself", || {
            let more = [greeted("127.0.0.1"), greeted("127.0.0.1")];
            more.iter().all(Option::is_some).then_some(more)
        })
        .into_iter()
        .flatten(),
    );
    // One worker hears of a reload before the other.
    until("a fourth is refused", || greeted("127.0.0.1").is_none().then_some(()));
    reload(&mut daemon, "address_prefix_ipv4 = 8");
    until("all are one again", || greeted("127.0.0.77").is_none().then_some(()));
    held.iter_mut().for_each(Client::in_step);
    drop(held);
    until("three fit again", || {
        let more = ["127.0.0.4", "127.0.0.5", "127.0.0.6"].map(greeted);
        more.iter().all(Option::is_some).then(|| assert!(greeted("127.0.0.7").is_none()))
    });
}

#[test]
fn ipv6_clients_are_counted_by_themselves() {
    if !root_or_skip("address_prefix_ipv6") {
        return;
    }
    let Ok(probe) = TcpListener::bind("[::1]:0") else {
        e2e::skipped("address_prefix_ipv6", "this machine has no IPv6");
        return;
    };
    let six: SocketAddr = probe.local_addr().expect("address");
    drop(probe);
    let mut site = site_with(&["max_sessions_per_address = 2", "address_prefix_ipv4 = 1"]);
    site.set_in("[listen]", &format!("address = \"{six}\""));
    let daemon = Daemon::start(site);
    let (four, refused) = at_once(|| TcpStream::connect(daemon.address()).expect("connect"), 8);
    assert_eq!((four.len(), refused.len()), (2, 6));
    let (greeted, refused) = at_once(|| TcpStream::connect(six).expect("connect"), 8);
    assert_eq!((greeted.len(), refused.len()), (2, 6));
    daemon.logged(&["reason=\"max_sessions_per_address\"", "peer=[::1]:"]);
}

#[test]
fn the_places_of_a_killed_worker_are_free_again_and_no_others() {
    if !root_or_skip("a worker dies at the limit") {
        return;
    }
    let daemon = Daemon::start(site_with(&["max_sessions = 12", "max_sessions_per_address = 12"]));
    let (held, _) = at_once(|| TcpStream::connect(daemon.address()).expect("connect"), 30);
    assert_eq!(held.len(), 12);
    let victim = daemon.worker_of(&held[0]);
    let (lost, mut held): (Vec<_>, Vec<_>) = held.into_iter().partition(|client| daemon.worker_of(client) == victim);
    victim.signal(Signal::SIGKILL);
    let mut fresh = room_for(&daemon, lost.len());
    held.iter_mut().chain(&mut fresh).for_each(Client::in_step);
    daemon.workers().into_iter().for_each(|worker| worker.signal(Signal::SIGKILL));
    room_for(&daemon, 12).iter_mut().for_each(Client::in_step);
}

/// A daemon with one honest worker and one that was taken over, and a client of the honest one.
fn beside_a_liar(scenario: &str) -> Option<(Daemon, Puppet, Client)> {
    if !root_or_skip(scenario) {
        return None;
    }
    let mut site = Puppet::stage(env!("CARGO_BIN_EXE_hostile-worker"));
    site.set("max_sessions = 6").set("max_sessions_per_address = 6");
    let daemon = Daemon::start(site);
    daemon.put("bob", "f", b"bob's");
    let puppet = Puppet::take_over(&daemon);
    // Those that made way for the puppet may still be counted for a moment.
    let mut bob = until("there is room for bob", || {
        let mut client = Client::connect_silently(daemon.address());
        (client.reply().code == 220).then_some(client)
    });
    bob.login("bob", "battery staple");
    Some((daemon, puppet, bob))
}

/// Eight that come at once: in the end `room` of them fit, and never more.
fn fit(daemon: &Daemon, room: usize) {
    until("as many fit as there is room for", || {
        let (greeted, _) = at_once(|| TcpStream::connect(daemon.address()).expect("connect"), 8);
        assert!(greeted.len() <= room, "{} were let in", greeted.len());
        (greeted.len() == room).then_some(())
    });
}

#[test]
fn a_worker_that_was_taken_over_cannot_touch_what_others_count() {
    let Some((daemon, mut puppet, mut bob)) = beside_a_liar("the region of another") else { return };
    let refused = puppet.write_ledger(1, 0, &[0xff; 64]).expect_err("it wrote into the region of another worker");
    assert!(refused.starts_with("error"), "{refused}");
    puppet.write_ledger(0, 0, &[0; 8]).expect("its own region is its own");
    puppet.write_ledger(0, 1 << 20, &[0; 8]).expect_err("it made its own region longer");
    let refused = puppet.cut_ledger().expect("the worker lives");
    assert!(refused.contains("Operation not permitted"), "the seal of its own region: {refused}");
    // Bob is one of the six of his address.
    fit(&daemon, 5);
    assert_eq!(bob.fetch("RETR f"), b"bob's");
}

#[test]
fn what_a_lying_worker_counts_keeps_new_clients_out_until_it_is_ended_and_harms_no_session() {
    let Some((daemon, mut puppet, mut bob)) = beside_a_liar("a region that lies") else { return };
    // Everything at its greatest; everything; a claim that never ends.
    for lie in [[0xff; 4096], [0xa5; 4096], [1; 4096]] {
        puppet.write_ledger(0, 0, &lie).expect("its own region is its own");
        full(&daemon, "too many clients");
        assert_eq!(bob.fetch("RETR f"), b"bob's");
    }
    puppet.write_ledger(0, 0, &[0; 4096]).expect("its own region is its own");
    puppet.write_ledger(0, 4, &[1]).expect("its own region is its own");
    // A claim that never ends is as good as a connection.
    fit(&daemon, 4);
    puppet.process.signal(Signal::SIGKILL);
    // An honest worker takes its place.
    fit(&daemon, 5);
    bob.in_step();
}

#[test]
fn a_session_is_ended_when_it_has_lasted_as_long_as_it_may_idle_or_not() {
    if !root_or_skip("session_timeout_secs") {
        return;
    }
    let daemon = Daemon::start(site_with(&["session_timeout_secs = 2"]));
    let file = std::fs::File::create(daemon.home("alice", "big")).expect("create");
    file.set_len(1 << 30).expect("truncate");
    let began = Instant::now();
    let (mut nobody, mut idle, mut busy, mut down) =
        (daemon.connect(), daemon.login("alice"), daemon.login("alice"), daemon.login("alice"));
    let mut data = down.passive();
    down.expect("RETR big", &[150, 125]);
    let slow = thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        let mut got = 0;
        while let Ok(count @ 1..) = data.read(&mut bytes) {
            got += count;
            thread::sleep(Duration::from_millis(2));
        }
        got
    });
    // REIN, and a login anew, are no way out.
    let mut lines = ["NOOP", "REIN", "USER alice", "PASS correct horse"].into_iter().cycle();
    let over = until("a session that is never silent is ended all the same", || {
        busy.send(lines.next().expect("endless"));
        let reply = busy.reply();
        thread::sleep(Duration::from_millis(50));
        (reply.code == 421).then(|| reply.text())
    });
    assert!(over.contains("as long as it may"), "{over}");
    for client in [&mut nobody, &mut idle, &mut down] {
        client.expect_reply(&[421]);
        assert!(client.ends().is_empty());
    }
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert!(slow.join().expect("the data connection") < 1 << 30, "the transfer was cut");
}
