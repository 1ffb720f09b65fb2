//! Against authd: it cannot be made to vouch for what it did not check, and a breach ends the worker.

use child_ipc::{
    link::worker_authd::{FromAuthd, Outcome, ToAuthd},
    types::SessionId,
};
use e2e::puppet::{Came, Link, check, encoded};

use crate::Scene;

fn fatal(what: &str, bytes: &[u8], fds: &[&str]) {
    let Some(mut scene) = Scene::set(what) else { return };
    scene.puppet().send_raw(Link::Authd, bytes, fds);
    scene.judge(Link::Authd, what);
}

#[test]
fn damaged_records_are_fatal() {
    let whole = encoded(&ToAuthd::Forget(SessionId(300)));
    fatal("cut short", &whole[..whole.len() - 1], &[]);
    fatal("left over", &[&whole[..], b"x"].concat(), &[]);
    fatal("no such request", &[0xee, 1, 2, 3], &[]);
    fatal("over-long", &[0; 5000], &[]);
    fatal("an account's name with a slash", b"\x00\x01\x03a/b\x01x\x00\x7f\x00\x00\x01", &[]);
}

#[test]
fn an_empty_record_is_the_end_of_the_link() {
    let Some(mut scene) = Scene::set("empty") else { return };
    scene.puppet().send_raw(Link::Authd, b"", &[]);
    assert_eq!(scene.puppet().receive(Link::Authd, 5000), Came::Ended);
    scene.unnoticed("empty");
}

#[test]
fn descriptors_are_fatal() {
    let whole = encoded(&ToAuthd::Forget(SessionId(1)));
    fatal("one descriptor", &whole, &["null"]);
    fatal("forty descriptors", &whole, &["null"; 40]);
}

#[test]
fn asking_twice_about_one_session_is_fatal() {
    let Some(mut scene) = Scene::set("Check twice") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    puppet.log_in(&scene.daemon, "alice", 1);
    let again = check(&scene.daemon, "alice", 1);
    puppet.send(Link::Authd, &again, &[]);
    // What authd answers does not matter; what the monitor hears twice does.
    while matches!(puppet.receive(Link::Authd, 2000), Came::Record(..)) {}
    scene.judge(Link::Monitor, "Check twice");
}

#[test]
fn a_wrong_password_gives_no_grant_and_no_broker() {
    let Some(mut scene) = Scene::set("wrong password") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    let ToAuthd::Check(mut ask) = check(&scene.daemon, "alice", 1) else { unreachable!("a check") };
    ask.password = child_ipc::types::Secret::new(b"guess".to_vec()).expect("short");
    puppet.send(Link::Authd, &ToAuthd::Check(ask), &[]);
    let (FromAuthd::Verdict(verdict), _) = puppet.expect(Link::Authd);
    assert_eq!(verdict.outcome, Outcome::Rejected);
    assert_eq!(puppet.receive(Link::Monitor, 300), Came::Nothing);
    scene.unnoticed("wrong password");
}

#[test]
fn a_flood_of_checks_does_not_lock_others_out() {
    let Some(mut scene) = Scene::set("flood of checks") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    for session in 1..2000 {
        let ToAuthd::Check(mut ask) = check(&scene.daemon, "alice", session) else { unreachable!("a check") };
        ask.password = child_ipc::types::Secret::new(format!("guess {session}").into_bytes()).expect("short");
        ask.source = std::net::Ipv4Addr::from_bits(0x0a00_0000 + session).into();
        if !puppet.send(Link::Authd, &ToAuthd::Check(ask), &[]) && !puppet.process.is_alive() {
            break;
        }
    }
    scene.unnoticed("flood of checks");
    // Somebody who has logged in before is served from the cache, whatever waits in the queue.
    scene.daemon.login("bob").in_step();
}
