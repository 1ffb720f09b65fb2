//! Links come and go; one that is misused ends alone.

use std::{fs, os::fd::AsFd, time::Duration};

use child_ipc::{
    Record, RecvError, SendError,
    link::{
        log::Event,
        monitor_broker::{FromBroker, ToBroker},
        worker_broker::{Ask, Done, Op, Why, WriteMode},
    },
    types::WorkerId,
};
use rustix::{
    io::write,
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
};

use crate::harness::{Broker, Setting, Worker, at, ways};

/// Descriptors of a broker without workers: the standard three, the monitor's link twice, the root.
const IDLE: usize = 6;

/// Waits until something holds, ten seconds at most.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

fn a_record(op: Op) -> Vec<u8> {
    let mut buffer = vec![0; Ask::CAP];
    child_ipc::wire::encode(&Ask { tag: 1, op }, &mut buffer).unwrap().to_vec()
}

/// Records that break the contract, each in its own way.
fn breaches() -> Vec<(&'static str, Vec<u8>)> {
    let good = a_record(Op::Stat(at("/f")));
    let climbing: Vec<u8> =
        a_record(Op::Stat(at("/xx/passwd"))).into_iter().map(|b| if b == b'x' { b'.' } else { b }).collect();
    vec![
        ("over-long", vec![0; Ask::CAP + 1]),
        ("left-over bytes", [&good[..], b"x"].concat()),
        ("cut short", good[..good.len() - 1].to_vec()),
        ("no such operation", vec![1, 99, 1, b'/']),
        ("a path that climbs", climbing),
        ("noise", (0..=255).collect()),
    ]
}

#[test]
fn a_breach_ends_its_link_and_no_other_and_the_monitor_is_told() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        let mut good = broker.worker();
        for (kind, bytes) in breaches() {
            let mut bad = broker.worker();
            assert_eq!(bad.read("/f"), Ok(b"x".to_vec()));
            write(bad.link.as_fd(), &bytes).unwrap();
            assert!(bad.is_closed(), "{kind}");
            let FromBroker::Log(record) = broker.next() else { panic!("{kind}: no log record") };
            assert_eq!(record.event, Event::Breach);
            assert!(record.text.to_string().starts_with(&format!("worker={} ", bad.id)), "{kind}: {}", record.text);
            let FromBroker::WorkerBreach(worker) = broker.next() else { panic!("{kind}: no breach") };
            assert_eq!(worker, bad.id);
            assert_eq!(good.read("/f"), Ok(b"x".to_vec()), "{kind}");
        }
    }
}

#[test]
fn a_descriptor_where_none_belongs_is_a_breach() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        let mut bad = broker.worker();
        assert!(bad.read("/f").is_ok());
        let record = a_record(Op::Stat(at("/f")));
        let fd = std::io::stdin();
        let fds = [fd.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(&bad.link, &[std::io::IoSlice::new(&record)], &mut control, SendFlags::empty()).unwrap();
        assert!(bad.is_closed());
        assert!(matches!(broker.next(), FromBroker::Log(_)));
        assert!(matches!(broker.next(), FromBroker::WorkerBreach(worker) if worker == bad.id));
        until("the descriptor that came is closed", || broker.descriptors().is_none_or(|count| count <= IDLE));
    }
}

#[test]
fn a_dropped_worker_is_closed_and_the_others_go_on() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        let (mut one, mut other) = (broker.worker(), broker.worker());
        assert!(one.read("/f").is_ok() && other.read("/f").is_ok());
        broker.drop_worker(one.id);
        assert!(one.is_closed());
        assert!(other.read("/f").is_ok());
        broker.drop_worker(WorkerId(999));
        let mut third = broker.worker();
        assert!(third.read("/f").is_ok() && other.read("/f").is_ok());
    }
}

#[test]
fn a_worker_that_is_dropped_before_a_thread_took_it_is_closed() {
    for by in ways() {
        let mut broker = Broker::with(&Setting { slots: 1, ..Setting::new(by) });
        broker.file("/f", "x");
        let mut one = broker.worker();
        assert!(one.read("/f").is_ok());
        let mut waiting = broker.worker();
        broker.drop_worker(waiting.id);
        assert!(waiting.is_closed());
        assert!(one.read("/f").is_ok());
    }
}

#[test]
fn more_workers_than_slots_are_refused_and_logged() {
    for by in ways() {
        let mut broker = Broker::with(&Setting { slots: 1, ..Setting::new(by) });
        broker.file("/f", "x");
        let mut one = broker.worker();
        assert!(one.read("/f").is_ok());
        let mut waiting = broker.worker();
        let mut refused = broker.worker();
        assert!(refused.is_closed());
        let FromBroker::Log(record) = broker.next() else { panic!() };
        assert!(record.text.to_string().contains("every slot is taken"), "{}", record.text);
        drop(one);
        assert!(waiting.read("/f").is_ok());
    }
}

#[test]
fn a_thousand_workers_use_the_slots_after_each_other_and_leak_nothing() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        broker.worker().read("/f").unwrap();
        until("the first link is gone", || broker.descriptors().is_none_or(|count| count <= IDLE));
        let idle = broker.descriptors();
        for turn in 0..1000 {
            let mut worker = broker.worker();
            assert!(worker.read("/f").is_ok());
            if turn % 2 == 0 {
                broker.drop_worker(worker.id);
                assert!(worker.is_closed());
            }
        }
        until("all links are gone", || broker.descriptors() == idle);
    }
}

#[test]
fn questions_in_a_row_are_answered_in_their_order() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        let mut worker = broker.worker();
        for tag in 0..20 {
            let op = if tag % 2 == 0 { Op::OpenRead(at("/f")) } else { Op::Stat(at("/f")) };
            worker.link.send(&Ask { tag, op }, &[]).unwrap();
        }
        for tag in 0..20 {
            let received = worker.link.recv().unwrap();
            assert_eq!((received.record.tag, received.fds.len()), (tag, usize::from(tag % 2 == 0)));
        }
    }
}

#[test]
fn stop_answers_what_was_asked_and_ends() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        let mut worker = broker.worker();
        worker.read("/f").unwrap();
        for tag in 0..10 {
            worker.link.send(&Ask { tag, op: Op::Stat(at("/f")) }, &[]).unwrap();
        }
        assert_eq!(broker.stop().code(), Some(0));
        for tag in 0..10 {
            let answer = worker.link.recv().unwrap().record;
            assert!(answer.tag == tag && matches!(answer.outcome, Ok(Done::Stat(_))));
        }
        assert!(worker.is_closed());
    }
}

/// Asks until the answers, which nobody reads, fill the link and the broker's thread waits in the middle of one.
fn stuff(worker: &mut Worker) {
    worker.link.set_nonblocking(true);
    let ask = Ask { tag: 0, op: Op::Stat(at("/f")) };
    let mut quiet = 0;
    while quiet < 20 {
        match worker.link.send(&ask, &[]) {
            Ok(()) => quiet = 0,
            Err(SendError::WouldBlock) => {
                quiet += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_worker_that_reads_no_answer_is_dropped_all_the_same() {
    for by in ways() {
        let mut broker = Broker::with(&Setting { slots: 1, ..Setting::new(by) });
        broker.file("/f", "x");
        let mut stuffed = broker.worker();
        stuff(&mut stuffed);
        let mut next = broker.worker();
        broker.drop_worker(stuffed.id);
        assert_eq!(next.read("/f"), Ok(b"x".to_vec()));
    }
}

#[test]
fn a_worker_that_reads_no_answer_does_not_hold_up_a_stop() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        let mut stuffed = broker.worker();
        stuff(&mut stuffed);
        assert_eq!(broker.stop().code(), Some(0));
    }
}

#[test]
fn a_broker_ends_with_its_monitor() {
    for by in ways() {
        let mut broker = Broker::new(by);
        let mut worker = broker.worker();
        assert!(worker.list("/", child_ipc::link::worker_broker::Form::Names, false).is_ok());
        let (unconnected, _) = child_ipc::link::monitor_broker::MonitorEnd::pair().unwrap();
        drop(std::mem::replace(&mut broker.link, unconnected));
        assert_eq!(broker.wait().code(), Some(0));
        assert!(worker.is_closed());
    }
}

#[test]
fn a_socket_that_is_no_link_is_refused_and_logged() {
    for by in ways() {
        let mut broker = Broker::new(by);
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        broker.link.send(&ToBroker::AddWorker(WorkerId(7)), &[stream.as_fd()]).unwrap();
        let FromBroker::Log(record) = broker.next() else { panic!() };
        assert!(record.text.to_string().starts_with("worker=7 "), "{}", record.text);
    }
}

#[test]
fn a_record_of_another_build_is_named_as_such() {
    for by in ways() {
        let mut broker = Broker::new(by);
        write(broker.link.as_fd(), b"\0\xff\xff\xff").unwrap();
        assert!(matches!(broker.next(), FromBroker::Log(_)));
        assert_eq!(broker.wait().code(), Some(1));
        assert!(matches!(broker.link.recv(), Err(RecvError::Closed)));
    }
}

#[test]
fn the_process_is_confined_and_small() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.worker();
        let status = fs::read_to_string(format!("/proc/{}/status", broker.pid())).unwrap();
        let value = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).unwrap().trim().to_owned();
        assert_eq!(value("Seccomp:"), "2");
        assert_eq!(value("NoNewPrivs:"), "1");
        assert_eq!(value("CapEff:"), "0000000000000000");
        assert!(!value("Uid:").split_whitespace().any(|uid| uid == "0"));
        if let Ok(rollup) = fs::read_to_string(format!("/proc/{}/smaps_rollup", broker.pid())) {
            let lines: Vec<_> = rollup.lines().filter(|l| l.starts_with("Pss:") || l.starts_with("Private")).collect();
            println!("{by:?}: {}", lines.join(", "));
        }
    }
}

#[test]
fn an_upload_belongs_to_its_link_and_what_was_not_published_is_removed() {
    for by in ways() {
        let mut broker = Broker::with(&Setting { atomic_uploads: true, ..Setting::new(by) });
        broker.file("/f", "before");
        let (mut mine, mut other) = (broker.worker(), broker.worker());
        let stage = |worker: &mut Worker, text: &str| {
            let (opened, file) = worker.write("/f", WriteMode::Replace).unwrap();
            write(&file, text.as_bytes()).unwrap();
            opened.staged.unwrap()
        };
        let hidden = |broker: &Broker| fs::read_dir(broker.path("/")).unwrap().count() - 1;
        let (first, second) = (stage(&mut mine, "first"), stage(&mut mine, "second"));
        let publish = |staged| Op::Publish { staged, sync: true };
        assert_eq!(other.done(publish(first)), Err(Why::NotFound), "not its own");
        assert_eq!(other.done(Op::Discard(first)), Ok(()));
        assert_eq!((broker.contents("/f").as_str(), hidden(&broker)), ("before", 2));
        assert_eq!(mine.done(publish(first)), Ok(()));
        assert_eq!((broker.contents("/f").as_str(), hidden(&broker)), ("first", 1));
        assert_eq!(mine.done(publish(first)), Err(Why::NotFound), "good for one use");
        assert_eq!(mine.done(Op::Discard(second)), Ok(()));
        assert_eq!(mine.done(publish(second)), Err(Why::NotFound));
        assert_eq!((broker.contents("/f").as_str(), hidden(&broker)), ("first", 0));
        // As many as a link may have, and what is left of them when it ends.
        for _ in 0..1024 {
            stage(&mut mine, "");
        }
        assert_eq!(mine.write("/f", WriteMode::Replace).unwrap_err(), Why::Busy);
        assert_eq!(hidden(&broker), 1024);
        stage(&mut other, "");
        drop(mine);
        until("the link's own are removed", || hidden(&broker) == 1);
        drop(other);
        until("all are removed", || hidden(&broker) == 0);
        assert_eq!(broker.contents("/f"), "first");
    }
}
