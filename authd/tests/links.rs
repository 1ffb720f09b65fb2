//! Start and end, and what a worker or monitor does that it must not.

mod harness;

use std::{io::IoSlice, os::fd::AsFd};

use child_ipc::{
    Record, SendError,
    link::{
        log::Event,
        monitor_authd::{AuthdSettings, FromAuthd, ToAuthd},
        worker_authd::{self, Outcome::Accepted},
    },
};
use harness::{Authd, CACHED, PASSWORD, PLAIN, Worker, check};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};

/// A breach of `worker` is reported and closes its link; another worker's session does not notice.
fn costs_only_the_worker(breach: impl FnOnce(&mut Worker), why: &str) {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    let mut other = authd.add_worker();
    other.ask(1, PASSWORD);
    breach(&mut worker);
    let line = loop {
        match authd.hear() {
            FromAuthd::Log(log) if log.event == Event::Breach => break log.text.to_string(),
            FromAuthd::Grant(grant) if grant.worker == other.id => {}
            FromAuthd::Log(_) => {}
            record => panic!("{record:?}"),
        }
    };
    assert!(line.starts_with("worker=0 ") && line.contains(why), "{line}");
    assert!(matches!(authd.hear(), FromAuthd::WorkerBreach(id) if id == worker.id));
    assert!(worker.is_closed());
    assert_eq!(other.hear(), (1, Accepted));
    other.ask(2, PASSWORD);
    assert_eq!(other.hear(), (2, Accepted));
}

fn send_raw(worker: &Worker, bytes: &[u8]) {
    send(&worker.link, bytes, SendFlags::empty()).unwrap();
}

fn encoded() -> Vec<u8> {
    postcard::to_stdvec(&worker_authd::ToAuthd::Check(check(1, "alice", PASSWORD, [192, 0, 2, 1]))).unwrap()
}

#[test]
fn a_malformed_record_costs_only_the_worker() {
    costs_only_the_worker(|worker| send_raw(worker, &[9, 9, 9]), "malformed");
    costs_only_the_worker(|worker| send_raw(worker, &encoded()[..10]), "malformed");
}

#[test]
fn a_record_too_long_costs_only_the_worker() {
    let cap = worker_authd::ToAuthd::CAP;
    let why = format!("longer than {cap}");
    costs_only_the_worker(|worker| send_raw(worker, &vec![0; cap + 1]), &why);
    costs_only_the_worker(|worker| send_raw(worker, &[0; 100_000]), &why);
}

#[test]
fn left_over_bytes_cost_only_the_worker() {
    costs_only_the_worker(|worker| send_raw(worker, &[encoded(), vec![0]].concat()), "1 bytes left over");
}

#[test]
fn a_descriptor_too_many_costs_only_the_worker() {
    let attach = |worker: &mut Worker| {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [worker.link.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(&worker.link, &[IoSlice::new(&encoded())], &mut control, SendFlags::empty()).unwrap();
    };
    costs_only_the_worker(attach, "1 descriptors where 0 to 0 belong");
}

#[test]
fn a_second_check_of_an_open_session_costs_only_the_worker() {
    let twice = |worker: &mut Worker| {
        worker.ask_for(1, "slow", b"x", [198, 51, 100, 1]);
        worker.ask(1, PASSWORD);
    };
    costs_only_the_worker(twice, "one check of a session at a time");
}

#[test]
fn a_worker_that_dies_or_is_dropped_takes_its_checks_along() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    let (mut dying, mut other) = (authd.add_worker(), authd.add_worker());
    other.ask_for(1, "slow", b"x", [198, 51, 100, 1]);
    dying.ask(1, PASSWORD);
    worker.ask(1, PASSWORD);
    drop(dying);
    authd.say(&ToAuthd::DropWorker(worker.id));
    assert!(worker.is_closed());
    assert_eq!(other.hear().0, 1);
    other.ask(2, PASSWORD);
    assert_eq!(other.hear(), (2, Accepted));
    assert_eq!(authd.grants().len(), 1);
}

#[test]
fn no_grant_is_lost_while_the_monitor_does_not_read() {
    let (mut authd, mut worker) = Authd::with_alice(CACHED);
    worker.ask(0, PASSWORD);
    assert_eq!(worker.hear(), (0, Accepted));
    // Asks until authd stops listening, and reads no grant meanwhile.
    worker.link.set_nonblocking(true);
    let (mut asked, mut refused, mut answered) = (0, 0, 0);
    while refused < 200 {
        let record = worker_authd::ToAuthd::Check(check(asked + 1, "alice", PASSWORD, [192, 0, 2, 1]));
        match worker.link.send(&record, &[]) {
            Ok(()) => (asked, refused) = (asked + 1, 0),
            Err(SendError::WouldBlock) => {
                refused += 1;
                std::thread::yield_now();
            }
            Err(error) => panic!("{error:?}"),
        }
        while worker.link.recv().is_ok() {
            answered += 1;
        }
    }
    assert!(asked > 100 && answered < asked, "asked {asked}, answered {answered}");
    let mut granted = vec![];
    while granted.len() <= asked as usize {
        match authd.hear() {
            FromAuthd::Grant(grant) => granted.push(grant.session.0),
            FromAuthd::Log(_) => {}
            other => panic!("{other:?}"),
        }
        // Verdicts are read as well, or authd would stop listening for that.
        while worker.link.recv().is_ok() {
            answered += 1;
        }
    }
    assert_eq!(granted, (0..=asked).collect::<Vec<u32>>());
    worker.link.set_nonblocking(false);
    while answered < asked {
        assert_eq!(worker.hear().1, Accepted);
        answered += 1;
    }
}

#[test]
fn a_worker_that_does_not_read_is_not_heard_and_holds_nobody_up() {
    let (mut authd, mut worker) = Authd::with_alice(CACHED);
    let mut other = authd.add_worker();
    other.ask(0, PASSWORD);
    assert_eq!(other.hear(), (0, Accepted));
    worker.link.set_nonblocking(true);
    let (mut session, mut refused) = (0, 0);
    while refused < 50 {
        let record = worker_authd::ToAuthd::Check(check(session, "alice", PASSWORD, [192, 0, 2, 1]));
        match worker.link.send(&record, &[]) {
            Ok(()) => (session, refused) = (session + 1, 0),
            Err(SendError::WouldBlock) => {
                refused += 1;
                other.ask(session + refused, PASSWORD);
                loop {
                    authd.heard();
                    other.link.set_nonblocking(true);
                    let heard = other.link.recv().is_ok();
                    other.link.set_nonblocking(false);
                    if heard {
                        break;
                    }
                }
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn authd_is_confined_before_it_says_ready() {
    let authd = Authd::start(CACHED);
    let status = std::fs::read_to_string(format!("/proc/{}/status", authd.child.id())).unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(field("Seccomp:"), "2");
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("CapEff:").trim_matches('0'), "");
    assert_eq!(field("Threads:"), "3");
}

#[test]
fn stop_ends_it_and_so_does_the_end_of_the_monitor() {
    let (authd, mut worker) = Authd::with_alice(PLAIN);
    worker.ask_for(1, "slow", b"x", [192, 0, 2, 1]);
    assert!(authd.stop().0.success());
    let mut authd = Authd::start(PLAIN);
    (authd.link, _) = child_ipc::Channel::pair().unwrap();
    assert!(authd.ended().0.success());
}

#[test]
fn a_monitor_that_breaks_the_contract_is_left_with_a_line() {
    let mut authd = Authd::spawn();
    authd.say(&ToAuthd::Stop);
    let FromAuthd::CannotStart(cannot) = authd.hear() else { panic!() };
    assert!(cannot.why.to_string().contains("Start comes first"));
    let (status, words) = authd.ended();
    assert!(!status.success() && words.is_empty(), "the monitor says it, once: {words}");

    let mut authd = Authd::spawn();
    send(&authd.link, &[0, 1, 2, 3], SendFlags::empty()).unwrap();
    let FromAuthd::CannotStart(cannot) = authd.hear() else { panic!() };
    assert!(cannot.why.to_string().contains("install all of one build"));

    let mut authd = Authd::start(PLAIN);
    let worker = authd.add_worker();
    authd.link.send(&ToAuthd::AddWorker(worker.id), &[worker.link.as_fd(), worker.keys.as_fd()]).unwrap();
    assert!(authd.ended().1.contains("every worker once"));
}

#[test]
fn a_number_of_threads_out_of_range_names_the_setting() {
    for threads in [0, 65, u32::MAX] {
        let settings = AuthdSettings { max_concurrent_password_checks: threads, login_cache_ttl_secs: 0 };
        let mut authd = Authd::start_unready(settings);
        let FromAuthd::CannotStart(cannot) = authd.hear() else { panic!() };
        assert!(cannot.why.to_string().contains("max_concurrent_password_checks"));
        assert_eq!(authd.ended().0.code(), Some(1));
    }
}

#[test]
fn started_by_hand_it_says_who_starts_it() {
    let program = env!("CARGO_BIN_EXE_caisson-authd");
    let ended = std::process::Command::new(program).stdin(std::process::Stdio::null()).output().unwrap();
    let words = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && words.contains("started by caissond"), "{words}");
    let ended = std::process::Command::new(program).arg("--frob").output().unwrap();
    assert!(ended.status.code() == Some(1) && String::from_utf8(ended.stderr).unwrap().contains("usage: "));
}
