//! Against a broker: whatever is asked, nothing outside the account's root is read, written, made or named.

use std::{
    fs,
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use child_ipc::{
    link::worker_broker::{Ask, Done, Op, WriteMode},
    types::{Blob, VirtPath},
};
use e2e::puppet::{Came, Link, encoded};

use crate::Scene;

fn path(text: &str) -> VirtPath {
    VirtPath::root().join(text.as_bytes()).expect("a path")
}

/// A scene whose puppet is logged in as alice.
fn scene(what: &str) -> Option<Scene> {
    let mut scene = Scene::set(what)?;
    let puppet = scene.puppet.as_mut().expect("not ended");
    puppet.log_in(&scene.daemon, "alice", 1);
    let (answer, fds) = puppet.ask_broker(Op::OpenRead(path("/f")));
    assert!(matches!(answer.outcome, Ok(Done::Opened(_))) && fds == 1, "alice's own file: {answer:?}");
    assert_eq!(puppet.read().as_deref(), Ok(&b"alice's"[..]));
    Some(scene)
}

/// An `Ask` for a path that no `VirtPath` can hold.
fn forged(op: u8, raw: &[u8]) -> Vec<u8> {
    let text = Blob::<4095>::new(raw).expect("short");
    [&[7, op][..], &encoded(&text)].concat()
}

fn fatal(what: &str, bytes: &[u8], fds: &[&str]) {
    let Some(mut scene) = scene(what) else { return };
    scene.puppet().send_raw(Link::Broker, bytes, fds);
    scene.judge(Link::Broker, what);
}

#[test]
fn paths_that_climb_or_are_relative_are_fatal() {
    // OpenRead is the first operation: its number is 0.
    assert_eq!(encoded(&Ask { tag: 7, op: Op::OpenRead(path("/f")) }), forged(0, b"/f"));
    for raw in [&b"/../bob/f"[..], b"..", b"/a/../../etc/passwd", b"etc/passwd", b"", b"/a//b", b"/f\0x", b"/./f"] {
        fatal(&raw.escape_ascii().to_string(), &forged(0, raw), &[]);
    }
}

#[test]
fn damaged_records_and_descriptors_are_fatal() {
    let whole = encoded(&Ask { tag: 7, op: Op::OpenRead(path("/f")) });
    fatal("cut short", &whole[..whole.len() - 1], &[]);
    fatal("left over", &[&whole[..], b"x"].concat(), &[]);
    fatal("no such operation", &[7, 0xee], &[]);
    fatal("over-long", &[0; 12_000], &[]);
    fatal("a descriptor", &whole, &["null"]);
    fatal("forty descriptors", &whole, &["null"; 40]);
}

#[test]
fn paths_of_the_machine_are_not_there() {
    let Some(mut scene) = scene("machine paths") else { return };
    let home = scene.daemon.site.account("alice").home.clone();
    let bobs = scene.daemon.home("bob", "f");
    for (name, target) in
        [("etc", "/etc"), ("up", "../.."), ("self", "/proc/self"), ("bob", bobs.to_str().expect("UTF-8"))]
    {
        symlink(target, home.join(name)).expect("symlink");
    }
    let users = fs::read(scene.daemon.site.users()).expect("users.toml");
    let puppet = scene.puppet.as_mut().expect("not ended");
    for text in [
        "/proc/self/environ",
        "/proc/1/root/etc/passwd",
        "/dev/null",
        "/etc/passwd",
        "/self/environ",
        "/self/fd/0",
        "/up/bob/f",
        "/up/users.toml",
        "/bob",
        bobs.to_str().expect("UTF-8"),
    ] {
        for op in [
            Op::OpenRead(path(text)),
            Op::Stat(path(text)),
            Op::SetModified(path(text), 0),
            Op::SetMode(path(text), 0o644),
            Op::SetFacts { path: path(text), modified: Some(0), mode: Some(0o644) },
            Op::SetTimes { path: path(text), accessed: 0, modified: 0 },
            Op::Space(path(text)),
            Op::Copy { from: path(text), to: path("/copy"), umask: 0 },
        ] {
            let (answer, fds) = puppet.ask_broker(op.clone());
            assert!(answer.outcome.is_err() && fds == 0, "{op:?}: {answer:?}");
        }
        for mode in [WriteMode::Replace, WriteMode::Append] {
            // Where a link climbs out, the root is its own parent: a file may be made, but inside.
            puppet.ask_broker(Op::OpenWrite { path: path(text), mode, umask: 0 });
            let _ = puppet.write(b"stolen");
        }
    }
    assert_eq!(fs::read(&bobs).expect("bob's file"), b"bob's");
    assert_eq!(fs::read(scene.daemon.site.users()).expect("users.toml"), users);
    scene.unnoticed("machine paths");
}

#[test]
fn racing_links_never_lead_outside() {
    let Some(mut scene) = scene("racing links") else { return };
    let home = scene.daemon.site.account("alice").home.clone();
    fs::create_dir(home.join("inside")).expect("mkdir");
    fs::write(home.join("inside/passwd"), b"inside").expect("write");
    symlink("inside", home.join("data")).expect("symlink");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0_u64.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let target = ["/etc", "inside", "../../../../../../etc"][usize::try_from(turn % 3).expect("below 3")];
                symlink(target, home.join("next")).expect("symlink");
                fs::rename(home.join("next"), home.join("data")).expect("rename");
            }
        });
        let puppet = scene.puppet.as_mut().expect("not ended");
        let mut opened = 0;
        for _ in 0..3000 {
            let (answer, fds) = puppet.ask_broker(Op::OpenRead(path("/data/passwd")));
            if fds == 1 {
                opened += 1;
                assert_eq!(puppet.read().as_deref(), Ok(&b"inside"[..]), "{answer:?}");
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(opened > 0, "the race was never won by the right one");
    });
    scene.unnoticed("racing links");
}

#[test]
fn descriptors_give_no_more_than_was_asked() {
    let Some(mut scene) = scene("rights of descriptors") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    assert!(puppet.write(b"x").is_err(), "a file opened for reading was written");
    let (answer, fds) = puppet.ask_broker(Op::OpenWrite { path: path("/new"), mode: WriteMode::Replace, umask: 0 });
    assert!(answer.outcome.is_ok() && fds == 1, "{answer:?}");
    assert!(puppet.read().is_err(), "a file opened for writing was read");
    let (answer, fds) = puppet.ask_broker(Op::List {
        path: path("/"),
        form: child_ipc::link::worker_broker::Form::Names,
        hidden: true,
        written: Blob::default(),
    });
    assert!(matches!(answer.outcome, Ok(Done::Listing { .. })) && fds == 1, "{answer:?}");
    assert!(puppet.write(b"x").is_err(), "a listing is sealed");
    for op in [Op::OpenRead(path("/")), Op::OpenWrite { path: path("/"), mode: WriteMode::Replace, umask: 0 }] {
        let (answer, fds) = puppet.ask_broker(op);
        assert!(answer.outcome.is_err() && fds == 0, "directories are never handed out: {answer:?}");
    }
    scene.unnoticed("rights of descriptors");
}

#[test]
fn set_id_bits_cannot_be_set() {
    let Some(mut scene) = scene("set-id bits") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    for mode in [0o4755, 0o2755, 0o6777, 0xffff] {
        puppet.send(Link::Broker, &Ask { tag: 7, op: Op::SetMode(path("/f"), mode) }, &[]);
        match puppet.receive(Link::Broker, 5000) {
            Came::Record(bytes, 0) => {
                let answer: child_ipc::link::worker_broker::Answer =
                    child_ipc::wire::decode(&bytes).expect("an answer");
                assert!(answer.outcome.is_err(), "{mode:o}: {answer:?}");
            }
            Came::Ended => break,
            other => panic!("{mode:o}: {other:?}"),
        }
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(scene.daemon.home("alice", "f")).expect("stat").permissions(),
    );
    assert_eq!(mode & 0o7000, 0);
}

#[test]
fn a_worker_that_reads_no_answers_holds_up_nobody_else() {
    let Some(mut scene) = scene("reads no answers") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    let ask = encoded(&Ask { tag: 7, op: Op::Stat(path("/f")) });
    // Until the queue is full both ways.
    let mut refused = 0;
    for _ in 0..5000 {
        refused = if puppet.send_raw(Link::Broker, &ask, &[]) { 0 } else { refused + 1 };
        if refused > 50 {
            break;
        }
    }
    let mut alice = scene.daemon.login("alice");
    assert_eq!(alice.fetch("RETR f"), b"alice's", "the same account at another worker");
    scene.unnoticed("reads no answers");
}

#[test]
fn a_link_ends_with_the_last_session_of_its_account() {
    let Some(mut scene) = scene("link ends") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    puppet.send(
        Link::Monitor,
        &child_ipc::link::monitor_worker::FromWorker::SessionEnded(child_ipc::types::SessionId(1)),
        &[],
    );
    assert_eq!(puppet.receive(Link::Broker, 5000), Came::Ended);
    scene.unnoticed("link ends");
}
