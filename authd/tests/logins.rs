//! Who gets in, in which order it is said, and who waits for whom.

mod harness;

use child_ipc::{
    link::{
        log::Event,
        monitor_authd::{Grant, ToAuthd},
        user_record::UserRecord,
        worker_authd::{
            Check,
            Outcome::{Accepted, Busy, Rejected},
            ToAuthd as FromWorker,
        },
    },
    types::SessionId,
};
use harness::{Authd, CACHED, PASSWORD, PLAIN, account, alice, encode, phc, user_name};

#[test]
fn a_right_password_is_granted_before_the_worker_hears_of_it() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    for session in 1..=5 {
        worker.ask(session, PASSWORD);
        assert_eq!(worker.hear(), (session, Accepted));
        let grant = Grant { worker: worker.id, session: SessionId(session), user: user_name("alice") };
        assert_eq!(authd.grants(), [grant]);
    }
}

#[test]
fn wrong_unknown_locked_and_passwordless_are_refused_alike_and_never_granted() {
    let mut authd = Authd::start(CACHED);
    let locked = UserRecord { locked: true, ..account("locked", &phc(harness::CHEAP, PASSWORD)) };
    let passwordless = UserRecord { hash: None, ..account("passwordless", "") };
    authd.set_users(&[alice(), locked, passwordless]);
    let mut worker = authd.add_worker();
    let tries = [("alice", "wrong"), ("alice", ""), ("bob", ""), ("locked", ""), ("passwordless", "")];
    for (session, (user, password)) in tries.into_iter().enumerate() {
        let password = if user == "alice" { password.as_bytes() } else { PASSWORD };
        worker.ask_for(session as u32, user, password, [192, 0, 2, session as u8]);
        assert_eq!(worker.hear(), (session as u32, Rejected), "{user}");
        let line = authd.hear_log(Event::LoginFailed);
        assert!(line.contains(&format!("user=\"{user}\"")) && line.contains(&format!("source=192.0.2.{session}")));
        assert!(!line.contains("wrong ") && !line.contains("correct"), "{line}");
    }
    assert_eq!(authd.heard().len(), 0);
}

#[test]
fn names_in_log_lines_are_escaped() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    worker.ask_for(1, "a\" source=10.9.9.9 \u{e4}", b"x", [192, 0, 2, 1]);
    assert_eq!(worker.hear(), (1, Rejected));
    let line = authd.hear_log(Event::LoginFailed);
    assert!(
        line.starts_with("source=192.0.2.1 why=unknown worker=0 user=\"a\\\" source=10.9.9.9 \\xc3\\xa4\""),
        "{line}"
    );
}

#[test]
fn an_account_for_any_password_is_accepted_at_once() {
    let mut authd = Authd::start(PLAIN);
    authd.set_users(&[UserRecord { any_password: true, hash: None, ..account("anonymous", "") }, harness::slow()]);
    let mut worker = authd.add_worker();
    worker.ask_for(1, "slow", b"x", [192, 0, 2, 1]);
    worker.ask_for(2, "anonymous", b"mozilla@example.com", [192, 0, 2, 1]);
    assert_eq!(worker.hear(), (2, Accepted));
    assert_eq!(authd.grants().len(), 1);
    assert_eq!(worker.hear(), (1, Rejected));
}

#[test]
fn a_cached_login_is_answered_while_every_check_thread_is_busy() {
    let (mut authd, mut worker) = Authd::with_alice(CACHED);
    worker.ask(1, PASSWORD);
    assert_eq!(worker.hear(), (1, Accepted));
    for session in 2..6 {
        worker.ask_for(session, "slow", b"x", [198, 51, 100, session as u8]);
    }
    worker.ask(6, PASSWORD);
    assert_eq!(worker.hear(), (6, Accepted));
    assert_eq!(authd.grants().len(), 2);
    let (status, words) = authd.stop();
    assert!(status.success());
    assert!(words.starts_with("cached=1 checked=2 refused=0"), "{words}");
}

#[test]
fn a_wrong_password_is_not_saved_by_the_cache() {
    let (authd, mut worker) = Authd::with_alice(CACHED);
    worker.ask(1, PASSWORD);
    worker.ask(2, b"correct hors");
    worker.ask(3, PASSWORD);
    let mut verdicts = [worker.hear(), worker.hear(), worker.hear()];
    verdicts.sort_by_key(|verdict| verdict.0);
    assert_eq!(verdicts, [(1, Accepted), (2, Rejected), (3, Accepted)]);
    drop(authd);
}

#[test]
fn sessions_that_wait_with_one_credential_pay_for_it_once() {
    let (authd, mut worker) = Authd::with_alice(CACHED);
    worker.ask_for(0, "slow", b"x", [198, 51, 100, 1]);
    for session in 1..=20 {
        worker.ask(session, PASSWORD);
    }
    assert_eq!(worker.hear(), (0, Rejected));
    for session in 1..=20 {
        assert_eq!(worker.hear(), (session, Accepted));
    }
    assert!(authd.stop().1.starts_with("cached=19 checked=2 "));
}

#[test]
fn a_ttl_of_zero_turns_the_cache_off_and_a_reload_can_do_so() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    for session in 1..=2 {
        worker.ask(session, PASSWORD);
        assert_eq!(worker.hear(), (session, Accepted));
    }
    for (session, settings) in [(3, CACHED), (4, CACHED), (5, PLAIN)] {
        authd.say(&ToAuthd::Settings(settings));
        worker.ask(session, PASSWORD);
        assert_eq!(worker.hear(), (session, Accepted));
    }
    assert!(authd.stop().1.starts_with("cached=1 checked=4 "));
}

#[test]
fn a_new_table_empties_the_cache_and_decides_from_then_on() {
    let (mut authd, mut worker) = Authd::with_alice(CACHED);
    worker.ask(1, PASSWORD);
    assert_eq!(worker.hear(), (1, Accepted));
    authd.set_users(&[account("alice", &phc(harness::CHEAP, b"another"))]);
    worker.ask(2, PASSWORD);
    assert_eq!(worker.hear(), (2, Rejected));
    authd.set_users(&[alice()]);
    worker.ask(3, PASSWORD);
    assert_eq!(worker.hear(), (3, Accepted));
    assert!(authd.stop().1.starts_with("cached=0 checked=3 "));
}

#[test]
fn a_check_that_waits_is_decided_by_the_table_of_its_turn() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    worker.ask_for(1, "slow", b"x", [198, 51, 100, 1]);
    worker.ask(2, PASSWORD);
    // The worker's records are read before its next ones are: ask something that is answered at once.
    worker.forget(99);
    authd.set_users(&[]);
    assert_eq!(worker.hear(), (1, Rejected));
    assert_eq!(worker.hear(), (2, Rejected));
    assert_eq!(authd.heard().len(), 0);
}

#[test]
fn a_table_with_one_bad_record_is_refused_whole_and_the_old_one_stays() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    let weak = "$argon2id$v=19$m=1024,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    authd.set_users(&[account("bob", &phc(harness::CHEAP, b"bob")), account("eve", weak)]);
    let line = authd.hear_log(Event::Fault);
    assert!(line.contains("account \"eve\": hash: m (memory in KiB) must be 19456"), "{line}");
    let cut = encode(&[alice(), account("bob", weak)]);
    authd.set_table(&cut[..cut.len() - 1]);
    assert!(authd.hear_log(Event::Fault).contains("record 2 is malformed"));
    worker.ask_for(1, "bob", b"bob", [192, 0, 2, 1]);
    assert_eq!(worker.hear(), (1, Rejected));
    worker.ask(2, PASSWORD);
    assert_eq!(worker.hear(), (2, Accepted));
}

#[test]
fn networks_take_turns_in_the_queue() {
    let (_authd, mut worker) = Authd::with_alice(PLAIN);
    worker.ask_for(0, "slow", b"x", [198, 51, 100, 1]);
    for session in 1..=4 {
        worker.ask_for(session, "alice", PASSWORD, [10, 0, 0, session as u8]);
    }
    worker.ask_for(5, "alice", PASSWORD, [10, 0, 1, 1]);
    let order: Vec<u32> = (0..6).map(|_| worker.hear().0).collect();
    assert_eq!(order, [0, 1, 5, 2, 3, 4]);
}

#[test]
fn a_network_that_fills_its_part_of_the_queue_is_told_busy_and_others_are_not() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    for session in 0..=128 {
        worker.ask_for(session, "slow", b"x", [10, 0, 0, session as u8]);
    }
    worker.ask_for(129, "slow", b"x", [10, 0, 0, 200]);
    assert_eq!(worker.hear(), (129, Busy));
    assert!(authd.hear_log(Event::Limit).contains("busy since start: 1"));
    worker.ask_for(130, "alice", PASSWORD, [10, 0, 1, 1]);
    assert_eq!(worker.hear(), (0, Rejected));
    // Its network's first turn comes after at most two of the crowd's.
    let next = [worker.hear(), worker.hear()];
    assert!(next.contains(&(130, Accepted)), "{next:?}");
}

#[test]
fn what_is_forgotten_is_never_answered_whether_it_waits_or_runs() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    worker.ask_for(1, "slow", b"x", [198, 51, 100, 1]);
    worker.ask(2, PASSWORD);
    worker.ask(3, PASSWORD);
    worker.forget(2);
    worker.forget(77);
    assert_eq!((worker.hear(), worker.hear()), ((1, Rejected), (3, Accepted)));
    worker.ask_for(4, "slow", b"x", [198, 51, 100, 1]);
    worker.ask(5, PASSWORD);
    worker.forget(4);
    assert_eq!(worker.hear(), (5, Accepted));
    let granted: Vec<u32> = authd.grants().iter().map(|grant| grant.session.0).collect();
    assert_eq!(granted, [3, 5]);
}

#[test]
fn refusals_of_a_source_that_goes_on_failing_wait_and_right_passwords_do_not() {
    let (_authd, mut worker) = Authd::with_alice(PLAIN);
    for session in 0..6 {
        worker.ask(session, b"wrong");
    }
    assert_eq!((worker.hear(), worker.hear()), ((0, Rejected), (1, Rejected)));
    worker.ask(100, PASSWORD);
    // Four refusals are held back, half a second to two seconds; the right password does not wait for them.
    let order: Vec<u32> = (0..5).map(|_| worker.hear().0).collect();
    assert_ne!(order.last(), Some(&100), "{order:?}");
    assert!(order.iter().filter(|session| **session != 100).is_sorted());
}

#[test]
fn without_tls_a_password_that_was_right_under_it_is_refused_like_any_other_and_not_by_the_cache() {
    let mut authd = Authd::start(CACHED);
    let (hash, needs_tls) = (phc(harness::CHEAP, PASSWORD), true);
    authd.set_users(&[UserRecord { needs_tls, ..account("secured", &hash) }, alice()]);
    let mut worker = authd.add_worker();
    let mut ask = |session: u32, secured: bool| {
        let check = Check { secured, ..harness::check(session, "secured", PASSWORD, [192, 0, 2, 1]) };
        worker.link.send(&FromWorker::Check(check), &[]).unwrap();
        worker.hear()
    };
    assert_eq!(ask(1, true), (1, Accepted));
    assert_eq!(authd.grants().len(), 1);
    assert_eq!(ask(2, false), (2, Rejected));
    assert!(authd.hear_log(Event::LoginFailed).contains(" why=no-tls worker=0 user=\"secured\""));
    assert_eq!(ask(3, true), (3, Accepted));
    assert_eq!(authd.grants().len(), 1);
    // The refusal has computed a hash, as an unknown name has.
    assert!(authd.stop().1.starts_with("cached=1 checked=2 refused=1 "));
}
