//! Logins: nobody is anybody before the monitor has said so, and nothing waits for ever.

use child_ipc::{
    link::{
        monitor_worker::{FromWorker, ToWorker},
        worker_authd::{Outcome, ToAuthd},
    },
    types::{BrokerId, SessionId},
};

use crate::harness::{World, receive};

#[test]
fn a_login_needs_the_monitors_word_not_only_authds() {
    let mut world = World::new();
    let (mut client, check) = world.asking();
    assert_eq!(check.user.as_bytes(), b"u");
    assert_eq!(check.password.unwrap().expose(), b"secret");
    assert!(check.source.is_loopback());
    client.send("PWD");
    world.verdict(check.session, Outcome::Accepted);
    // Had the verdict been enough, this client would have been served before the next one's check is there.
    let (_other, _) = world.asking();
    let _link = world.grant_with_link(check.session, BrokerId(1));
    assert_eq!(client.reply(), "230 Logged in.");
    assert_eq!(client.reply(), "257 \"/\" is the working directory.");
}

#[test]
fn a_late_verdict_changes_nothing() {
    let mut world = World::new();
    let (mut client, session, _link) = world.logged_in(BrokerId(1));
    world.verdict(session, Outcome::Rejected);
    world.verdict(SessionId(4711), Outcome::Rejected);
    let _ = world.asking();
    assert!(client.told("PWD").starts_with("257 "));
}

#[test]
fn each_attempt_has_an_identity_of_its_own_and_the_last_one_closes() {
    let mut world = World::new();
    let (mut client, first) = world.asking();
    world.verdict(first.session, Outcome::Rejected);
    assert_eq!(client.reply(), "530 Login incorrect.");
    for turn in [2, 3] {
        assert!(client.told("USER u").starts_with("331 "));
        client.send("PASS wrong");
        let ToAuthd::Check(check) = receive(&mut world.authd).record else { panic!("a check was expected") };
        assert_eq!(check.session, SessionId(first.session.0 + turn - 1));
        world.verdict(check.session, Outcome::Rejected);
        assert_eq!(client.reply(), "530 Login incorrect.");
    }
    assert_eq!(client.reply(), "421 Too many failed logins.");
    assert!(client.is_closed());
}

#[test]
fn a_client_that_vanishes_is_forgotten_and_its_grant_given_back() {
    let mut world = World::new();
    let (client, check) = world.asking();
    client.reset();
    assert!(matches!(receive(&mut world.authd).record, ToAuthd::Forget(session) if session == check.session));
    let _link = world.grant_with_link(check.session, BrokerId(1));
    assert!(matches!(world.heard().record, FromWorker::SessionEnded(session) if session == check.session));
}

#[test]
fn the_death_of_authd_is_told_and_a_new_one_serves() {
    let mut world = World::new();
    let (mut client, _) = world.asking();
    world.replace_authd();
    assert_eq!(client.reply(), "421 Logins are not possible now; try again shortly.");
    assert!(client.is_closed());
    let (mut client, _, _link) = world.logged_in(BrokerId(1));
    assert!(client.told("NOOP").starts_with("200 "));
}

#[test]
fn a_busy_authd_and_a_monitor_that_cannot_grant_are_told_apart_from_a_wrong_password() {
    let mut world = World::new();
    let (mut client, check) = world.asking();
    world.verdict(check.session, Outcome::Busy);
    assert_eq!(client.reply(), "421 Too many logins at once; try again shortly.");
    let (mut client, check) = world.asking();
    world.monitor.send(&ToWorker::GrantRefused(check.session), &[]).unwrap();
    assert_eq!(client.reply(), "421 This account cannot be served now; try again later.");
}
