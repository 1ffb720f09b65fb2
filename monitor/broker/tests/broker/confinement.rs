//! Nothing outside the home is read, written, listed or made, whatever links say and whatever races.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    sync::atomic::{AtomicBool, Ordering},
};

use child_ipc::link::worker_broker::{Done, Facts, Form, Op, Why, WriteMode};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{Broker, StartedBy, at, ways};

/// A home with every link of trap T19, and one that is a way out by name.
fn trapped(by: StartedBy) -> Broker {
    let broker = Broker::new(by);
    broker.directory("/data");
    broker.file("/data/f", "inside");
    let outside = broker.scratch.outside();
    for (link, target) in [
        ("/out", "/etc"),
        ("/in", "./data"),
        ("/up", "../.."),
        ("/abs", "/data"),
        ("/named", outside.to_str().unwrap()),
        ("/climb", "../outside"),
        ("/passwd", "/etc/passwd"),
        ("/self", "/proc/self"),
        ("/loop", "loop"),
    ] {
        broker.symlink(link, target);
    }
    broker
}

#[test]
fn links_out_of_the_home_lead_nowhere() {
    for by in ways() {
        let mut broker = trapped(by);
        let mut worker = broker.worker();
        for path in ["/out/passwd", "/passwd", "/named/secret", "/climb/secret", "/up/etc/passwd", "/up/outside/secret"]
        {
            assert_eq!(worker.read(path), Err(Why::NotFound), "{path}");
            assert_eq!(worker.ask(Op::Stat(at(path))).unwrap_err(), Why::NotFound, "{path}");
            assert_eq!(worker.ask(Op::SetModified(at(path), 0)).unwrap_err(), Why::NotFound, "{path}");
            assert_eq!(worker.done(Op::SetMode(at(path), 0o777)), Err(Why::NotFound), "{path}");
        }
        for path in ["/out", "/named", "/climb"] {
            assert_eq!(worker.done(Op::ChangeDir(at(path))), Err(Why::NotFound), "{path}");
            assert_eq!(worker.list(path, Form::Facts(Facts::EVERY), true).unwrap_err(), Why::NotFound, "{path}");
            let inside = format!("{path}/x");
            assert_eq!(worker.done(Op::MakeDir(at(&inside), 0)), Err(Why::NotFound), "{path}");
            assert_eq!(worker.write(&inside, WriteMode::Replace).unwrap_err(), Why::NotFound, "{path}");
            let rename = Op::Rename { from: at("/data/f"), to: at(&inside) };
            assert_eq!(worker.done(rename), Err(Why::NotFound), "{path}");
        }
        assert_eq!(worker.done(Op::ChangeDir(at("/loop"))), Err(Why::Invalid));
        assert_eq!(broker.contents("/data/f"), "inside");
        assert_eq!(fs::read_dir(broker.scratch.outside()).unwrap().count(), 1);
    }
}

#[test]
fn links_inside_the_home_work_and_the_root_is_its_own_parent() {
    for by in ways() {
        let mut broker = trapped(by);
        let mut worker = broker.worker();
        for path in ["/in/f", "/abs/f", "/up/data/f"] {
            assert_eq!(worker.read(path), Ok(b"inside".to_vec()), "{path}");
        }
        assert_eq!(worker.done(Op::MakeDir(at("/up/made"), 0)), Ok(()));
        assert!(broker.exists("/made"));
        let home = worker.list("/up", Form::Names, false).unwrap();
        assert_eq!(home, worker.list("/", Form::Names, false).unwrap());
    }
}

#[test]
fn a_link_that_leads_out_is_stored_through_only_inside() {
    for by in ways() {
        let mut broker = trapped(by);
        broker.directory("/etc");
        let mut worker = broker.worker();
        assert!(worker.write("/passwd", WriteMode::Replace).unwrap().0.created);
        assert!(broker.exists("/etc/passwd"));
    }
}

#[test]
fn proc_and_its_magic_links_are_not_there() {
    for by in ways() {
        let mut broker = trapped(by);
        let mut worker = broker.worker();
        for path in
            ["/proc/self/environ", "/proc/1/root/etc/passwd", "/self/fd/0", "/self/root/etc/passwd", "/dev/null"]
        {
            assert_eq!(worker.read(path), Err(Why::NotFound), "{path}");
            assert_eq!(worker.done(Op::ChangeDir(at(path))), Err(Why::NotFound), "{path}");
        }
    }
}

#[test]
fn the_parent_shown_for_the_root_is_nobody() {
    for by in ways() {
        let mut broker = trapped(by);
        let mut worker = broker.worker();
        let outside = format!("{:x}", fs::metadata(broker.path("/..")).unwrap().ino());
        for path in ["/", "/up", "/data"] {
            let lines = String::from_utf8(worker.list(path, Form::Facts(Facts::EVERY), true).unwrap()).unwrap();
            assert!(!lines.lines().any(|l| l.contains(&format!("g{outside};"))), "{path}: {lines}");
        }
    }
}

#[test]
fn a_hard_link_is_a_file_like_any_other() {
    for by in ways() {
        let mut broker = Broker::new(by);
        fs::hard_link(broker.scratch.outside().join("secret"), broker.path("/hard")).unwrap();
        let mut worker = broker.worker();
        // Who made the link could read the file: its mode is what protects it, not its place.
        assert_eq!(worker.read("/hard"), Ok(b"SECRET".to_vec()));
    }
}

/// Swaps two names of the home until told to stop.
fn swap(broker: &Broker, a: &str, b: &str, stop: &AtomicBool) {
    let (a, b) = (broker.path(a), broker.path(b));
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
    }
}

#[test]
fn a_directory_that_turns_into_a_link_out_while_it_is_used_never_leads_out() {
    for by in ways() {
        let mut broker = trapped(by);
        fs::write(broker.scratch.outside().join("f"), "SECRET").unwrap();
        fs::set_permissions(broker.scratch.outside(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let mut worker = broker.worker();
        let stop = AtomicBool::new(false);
        let (mut inside, mut refused) = (0_u32, 0_u32);
        std::thread::scope(|scope| {
            scope.spawn(|| swap(&broker, "/data", "/named", &stop));
            for turn in 0..10_000_u32 {
                let path = if turn % 2 == 0 { "/data/f" } else { "/data/../climb/f" };
                match worker.ask(Op::OpenRead(at(path))) {
                    Ok((Done::Opened(opened), _)) => {
                        assert_eq!(opened.size, 6);
                        inside += 1;
                    }
                    Err(Why::NotFound | Why::NotDirectory | Why::Busy) => refused += 1,
                    other => panic!("{path}: {other:?}"),
                }
                if turn % 16 == 0 {
                    assert_ne!(worker.read("/data/f"), Ok(b"SECRET".to_vec()));
                    let _ = worker.write("/data/g", WriteMode::Replace);
                    let _ = worker.done(Op::MakeDir(at("/data/d"), 0));
                    let _ = worker.done(Op::SetMode(at("/data/f"), 0o600));
                    let _ = worker.ask(Op::SetModified(at("/data/f"), 0));
                    let _ = worker.done(Op::Rename { from: at("/data/g"), to: at("/data/h") });
                    let _ = worker.done(Op::Remove(at("/data/h")));
                    let _ = worker.done(Op::RemoveDir(at("/data/d")));
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(inside > 0 && refused > 0, "the race was not run: {inside} {refused}");
        let mut names: Vec<_> =
            fs::read_dir(broker.scratch.outside()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["f", "secret"]);
        let untouched = fs::metadata(broker.scratch.outside().join("f")).unwrap();
        assert_eq!((untouched.mode() & 0o777, untouched.mtime() > 0), (0o644, true));
    }
}

#[test]
fn a_link_that_climbs_is_followed_inside_while_directories_are_renamed_all_the_time() {
    for by in ways() {
        let mut broker = trapped(by);
        broker.directory("/data/deep");
        broker.symlink("/data/deep/back", "../../data/f");
        broker.directory("/other");
        let mut worker = broker.worker();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| swap(&broker, "/other", "/out", &stop));
            for _ in 0..5_000 {
                match worker.read("/data/deep/back") {
                    Ok(contents) => assert_eq!(contents, b"inside"),
                    Err(why) => assert_eq!(why, Why::Busy),
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_home_that_cannot_be_served_is_named_with_the_remedy() {
    use child_ipc::link::monitor_broker::FromBroker;

    use crate::harness::{Scratch, Setting};
    for by in ways() {
        let scratch = Scratch::new();
        let (file, closed) = (scratch.outside().join("secret"), scratch.outside().join("closed"));
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        for home in [file, closed] {
            let mut broker = Broker::unready(&Setting::new(by), Scratch::new(), &home);
            let FromBroker::CannotStart(said) = broker.next() else { panic!("started for {home:?}") };
            let why = String::from_utf8(said.why.as_bytes().to_vec()).unwrap();
            assert!(why.starts_with("account alice: home ") && why.contains("caisson-users(5)"), "{why}");
            assert_eq!(broker.wait().code(), Some(1));
        }
    }
}
