//! Against the monitor: every request out of phase, twice, damaged, and for sessions that are not the worker's own.

use child_ipc::{
    link::{
        CannotStart, Ready,
        log::{Event, Level, LogRecord},
        monitor_worker::{ConnectBack, FromWorker, PassivePool, ToWorker},
    },
    types::{Blob, ListenerId, SessionId},
};
use e2e::{
    ftp,
    puppet::{Came, Link, Puppet, encoded},
    until,
};
use nix::sys::signal::Signal;

use crate::Scene;

fn ready() -> FromWorker {
    FromWorker::Ready(Ready { weaker: Blob::default() })
}

fn cannot_start() -> FromWorker {
    FromWorker::CannotStart(CannotStart { why: Blob::cut(b"because") })
}

fn pool(listener: u32, wanted: u8) -> FromWorker {
    FromWorker::PassivePool(PassivePool { listener: ListenerId(listener), wanted })
}

fn connect_back(session: u32, port: u16) -> FromWorker {
    FromWorker::ConnectBack(ConnectBack { session: SessionId(session), port })
}

fn ended(session: u32) -> FromWorker {
    FromWorker::SessionEnded(SessionId(session))
}

fn log(text: &[u8]) -> FromWorker {
    FromWorker::Log(LogRecord { level: Level::Error, event: Event::Fault, session: None, text: Blob::cut(text) })
}

/// One act that must cost the worker its life.
fn fatal(what: &str, bytes: &[u8], fds: &[&str]) {
    let Some(mut scene) = Scene::set(what) else { return };
    scene.puppet().send_raw(Link::Monitor, bytes, fds);
    scene.judge(Link::Monitor, what);
}

#[test]
fn ready_twice_is_fatal() {
    fatal("Ready twice", &encoded(&ready()), &[]);
}

#[test]
fn a_last_word_after_ready_is_fatal() {
    fatal("CannotStart after Ready", &encoded(&cannot_start()), &[]);
}

#[test]
fn connecting_for_a_session_nobody_vouched_for_is_fatal() {
    fatal("ConnectBack, not vouched", &encoded(&connect_back(1, 2000)), &["control"]);
}

#[test]
fn ending_a_session_nobody_vouched_for_is_fatal() {
    fatal("SessionEnded, not vouched", &encoded(&ended(1)), &[]);
}

#[test]
fn asking_for_no_sockets_or_too_many_is_fatal() {
    fatal("PassivePool, 0", &encoded(&pool(0, 0)), &[]);
    fatal("PassivePool, 255", &encoded(&pool(0, 255)), &[]);
}

#[test]
fn a_missing_descriptor_is_fatal() {
    let Some(mut scene) = Scene::set("ConnectBack without its socket") else { return };
    let daemon = &scene.daemon;
    let puppet = scene.puppet.as_mut().expect("not ended");
    puppet.log_in(daemon, "alice", 1);
    puppet.send(Link::Monitor, &connect_back(1, 2000), &[]);
    scene.judge(Link::Monitor, "ConnectBack without its socket");
}

#[test]
fn descriptors_that_do_not_belong_are_fatal() {
    fatal("PassivePool with one", &encoded(&pool(0, 1)), &["null"]);
    fatal("Log with two", &encoded(&log(b"x")), &["null", "control"]);
    fatal("Log with forty", &encoded(&log(b"x")), &["null"; 40]);
}

#[test]
fn damaged_records_are_fatal() {
    let whole = encoded(&connect_back(300, 2000));
    fatal("cut short", &whole[..whole.len() - 1], &["control"]);
    fatal("left over", &[&whole[..], b"x"].concat(), &["control"]);
    fatal("no such request", &[0xee, 1, 2, 3], &[]);
    fatal("over-long", &vec![2; 9000], &[]);
}

#[test]
fn a_record_of_the_other_direction_is_fatal() {
    fatal("Stop", &encoded(&ToWorker::Stop), &[]);
}

#[test]
fn an_empty_record_is_fatal() {
    fatal("empty", b"", &[]);
}

/// Does `record` before `Ready`, in place of a killed worker.
fn early(what: &str, record: &FromWorker, fds: &str) {
    if !e2e::root_or_skip(what) {
        return;
    }
    let daemon = e2e::Daemon::start(Puppet::stage(env!("CARGO_BIN_EXE_hostile-worker")));
    daemon.put("bob", "f", b"bob's");
    let (doomed, mut bob) = daemon.login_at_two_workers("bob");
    let before = daemon.workers();
    Puppet::token(&daemon.site, &format!("send monitor {}{fds}", e2e::puppet::hex(&encoded(record))));
    daemon.worker_of(&doomed).signal(Signal::SIGKILL);
    until("the token is taken and an honest worker has taken over in the end", || {
        let honest = daemon.site.programs.join("honest").join("caisson-worker").display().to_string();
        let taken = !daemon.site.programs.join("token").exists();
        let all = daemon.workers().iter().all(|w| w.link("exe").as_ref() == Some(&honest));
        let new = daemon.workers().iter().any(|w| !before.contains(w));
        (taken && all && new && daemon.workers().len() == 2).then_some(())
    });
    assert_eq!(bob.fetch("RETR f"), b"bob's", "{what}");
}

#[test]
fn requests_before_ready_are_fatal() {
    early("PassivePool before Ready", &pool(0, 1), "");
    early("SessionEnded before Ready", &ended(1), "");
    early("ConnectBack before Ready", &connect_back(1, 2000), " null");
}

#[test]
fn the_sessions_of_another_worker_cannot_be_touched() {
    for record in [ended(0), ended(1), ended(2), connect_back(0, 2000), connect_back(1, 2000), connect_back(2, 2000)] {
        let fds = if matches!(record, FromWorker::ConnectBack(_)) { &["control"][..] } else { &[] };
        fatal("a session of the honest worker", &encoded(&record), fds);
    }
}

#[test]
fn a_session_cannot_be_ended_twice() {
    let Some(mut scene) = Scene::set("SessionEnded twice") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    puppet.log_in(&scene.daemon, "alice", 1);
    puppet.send(Link::Monitor, &ended(1), &[]);
    assert_eq!(puppet.receive(Link::Broker, 5000), Came::Ended, "the broker's link is closed by the broker's side");
    puppet.send(Link::Monitor, &ended(1), &[]);
    scene.judge(Link::Monitor, "SessionEnded twice");
}

#[test]
fn connecting_by_anything_but_a_control_connection_leads_nowhere() {
    let Some(mut scene) = Scene::set("ConnectBack, wrong descriptors") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    puppet.log_in(&scene.daemon, "alice", 1);
    for strange in ["null", "pipe", "unix", "own", "listener", "monitor", "authd", "broker"] {
        puppet.send(Link::Monitor, &connect_back(1, 2000), &[strange]);
        match puppet.receive(Link::Monitor, 5000) {
            Came::Record(bytes, fds) => {
                let answer = child_ipc::wire::decode::<ToWorker>(&bytes).expect("a record");
                assert!(
                    matches!(answer, ToWorker::ConnectBack(c) if c.errno != 0) && fds == 0,
                    "{strange}: {answer:?}"
                );
            }
            other => panic!("{strange}: {other:?}"),
        }
    }
    scene.unnoticed("ConnectBack, wrong descriptors");
}

#[test]
fn connections_go_to_the_client_itself_and_to_no_system_port() {
    let Some(mut scene) = Scene::set("ConnectBack, right descriptor") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    puppet.log_in(&scene.daemon, "alice", 1);
    // The puppet's control connection comes from us, by 127.0.0.1.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    puppet.send(Link::Monitor, &connect_back(1, port), &["control"]);
    let (answer, fds) = puppet.expect::<ToWorker>(Link::Monitor);
    assert!(matches!(answer, ToWorker::ConnectBack(c) if c.errno == 0) && fds == 1, "{answer:?}");
    let connection = ftp::accept(&listener);
    assert_eq!(connection.peer_addr().expect("peer").ip(), scene.daemon.address().ip());
    for service in [22, 25, 80, 1023] {
        puppet.send(Link::Monitor, &connect_back(1, service), &["control"]);
        let (answer, fds) = puppet.expect::<ToWorker>(Link::Monitor);
        assert!(matches!(answer, ToWorker::ConnectBack(c) if c.errno != 0) && fds == 0, "{service}: {answer:?}");
    }
    scene.unnoticed("ConnectBack, right descriptor");
}

#[test]
fn where_the_peer_is_a_proxy_nobody_is_connected_to() {
    if !e2e::root_or_skip("ConnectBack behind a proxy") {
        return;
    }
    let mut site = Puppet::stage(env!("CARGO_BIN_EXE_hostile-worker"));
    site.set("workers = 1").listen("proxies = [\"127.0.0.1\"]");
    let mut daemon = e2e::Daemon::start(site);
    let mut puppet = Puppet::take_over(&daemon);
    puppet.log_in(&daemon, "alice", 1);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    let refused = |puppet: &mut Puppet| {
        puppet.send(Link::Monitor, &connect_back(1, port), &["control"]);
        let answer = std::iter::repeat_with(|| puppet.expect::<ToWorker>(Link::Monitor))
            .find(|(record, _)| matches!(record, ToWorker::ConnectBack(_)));
        assert!(matches!(answer, Some((ToWorker::ConnectBack(connecting), 0)) if connecting.errno != 0), "{answer:?}");
    };
    refused(&mut puppet);
    // Nor when a reload has made it a listener without proxies: those that came before are proxies still.
    daemon.site.listen("");
    daemon.site.write();
    daemon.signal(nix::sys::signal::Signal::SIGHUP);
    daemon.logged(&["reloaded"]);
    refused(&mut puppet);
    listener.set_nonblocking(true).expect("fcntl");
    assert!(listener.accept().is_err(), "the proxy was connected to");
}

#[test]
fn a_worker_that_reads_nothing_is_ended_and_costs_root_little() {
    let Some(mut scene) = Scene::set("reads nothing") else { return };
    let monitor = scene.daemon.monitor;
    let before = monitor.memory("Private_Dirty");
    let ask = encoded(&pool(0, 1));
    let puppet = scene.puppet();
    let mut asked = 0;
    while asked < 20_000 && puppet.process.is_alive() {
        // A full queue means that the monitor has not come round yet.
        puppet.send_raw(Link::Monitor, &ask, &[]);
        asked += 1;
    }
    assert!(!puppet.process.is_alive(), "still alive after {asked} questions");
    let grown = monitor.memory("Private_Dirty").saturating_sub(before);
    assert!(grown < 2 << 20, "the monitor grew by {grown} bytes");
    scene.puppet = None;
    scene.unnoticed("reads nothing");
}

#[test]
fn a_worker_that_hoards_passive_sockets_leaves_some_to_others() {
    let mut site = Puppet::stage(env!("CARGO_BIN_EXE_hostile-worker"));
    site.passive = (18_100, 18_109);
    let Some(mut scene) = Scene::set_on("hoards sockets", site) else { return };
    let mut had = 0;
    for _ in 0..30 {
        scene.puppet().send(Link::Monitor, &pool(0, 32), &[]);
        match scene.puppet().receive(Link::Monitor, 5000) {
            Came::Record(_, fds) => had += fds,
            _ => break,
        }
    }
    assert!(had < 10, "it had {had} of ten ports");
    scene.unnoticed("hoards sockets");
}

#[test]
fn a_flood_of_log_records_drowns_nobody() {
    /// Lines a child may have written in a second (monitor/src/log.rs).
    const A_SECOND: u64 = 10_000;
    let Some(mut scene) = Scene::set("log flood") else { return };
    let record = encoded(&log(b"evil=\"\x1b[31m\n<0>kernel: fake\""));
    let began = std::time::Instant::now();
    for _ in 0..40_000 {
        if !scene.puppet().send_raw(Link::Monitor, &record, &[]) && !scene.puppet().process.is_alive() {
            break;
        }
    }
    scene.unnoticed("log flood");
    let most = A_SECOND * (began.elapsed().as_secs() + 2);
    let text = scene.daemon.log();
    let lines = text.lines().filter(|l| l.contains("evil")).count() as u64;
    assert!(lines <= most, "{lines} lines passed where {most} may");
    assert!(!text.contains('\x1b') && !text.contains("\n<0>kernel"), "control bytes are escaped");
}
