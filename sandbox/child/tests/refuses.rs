//! Per role: do the forbidden thing, be refused or killed. And unconfined: get away with it, so that the test can fail.

#[path = "../examples/confined/attempts.rs"]
mod attempts;
mod common;

use attempts::{Alone, Attempt, Expected, attempts};
use child_sandbox::Role;
use common::{End, Place, Start, start};

/// Runs every attempt of a role in a process of its own and returns what went wrong.
fn every_attempt(role: impl Into<Option<Role>>, how: &str, judge: impl Fn(Start, &Attempt, &End) -> bool) {
    let role = role.into();
    let mut wrong = Vec::new();
    for begun in Start::possible() {
        for attempt in attempts(role) {
            let place = Place::new();
            let process = start(begun, how, role, "all", attempt.name, &place);
            assert!(process.hear().starts_with("ready"));
            let end = process.end();
            if !judge(begun, attempt, &end) {
                wrong.push(format!("{begun:?} {}: {}: {end:?}", role.map_or("monitor", Role::as_str), attempt.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn stopped(_: Start, attempt: &Attempt, end: &End) -> bool {
    match attempt.expected() {
        Expected::Killed => *end == End::Killed,
        Expected::Refused => matches!(end, End::Said(said) if said.starts_with("failed: ")),
    }
}

fn gets_away_with_it(begun: Start, attempt: &Attempt, end: &End) -> bool {
    let succeeded = match end {
        // execve replaces the process; its successor says nothing.
        End::Said(said) => said == "done" || said.is_empty(),
        _ => return false,
    };
    match attempt.alone {
        Alone::Succeeds => succeeded,
        Alone::SucceedsAsRoot => succeeded == (begun == Start::AsRoot),
        Alone::Returns => true,
    }
}

#[test]
fn an_ftp_worker_gets_away_with_nothing() {
    every_attempt(Role::WorkerFtp, "under-monitor", stopped);
}

#[test]
fn an_ssh_worker_gets_away_with_nothing() {
    every_attempt(Role::WorkerSsh, "under-monitor", stopped);
}

#[test]
fn authd_gets_away_with_nothing() {
    every_attempt(Role::Authd, "under-monitor", stopped);
}

#[test]
fn a_broker_gets_away_with_nothing() {
    every_attempt(Role::Broker, "under-monitor", stopped);
}

#[test]
fn the_reader_of_the_configuration_gets_away_with_nothing() {
    every_attempt(Role::Config, "under-monitor", stopped);
}

#[test]
fn the_monitor_gets_away_with_nothing() {
    every_attempt(None, "confined", stopped);
}

#[test]
fn a_child_gets_away_with_nothing_without_the_monitors_filter_either() {
    every_attempt(Role::WorkerFtp, "confined", stopped);
}

#[test]
fn unconfined_the_acts_of_a_worker_are_possible() {
    every_attempt(Role::WorkerFtp, "alone", gets_away_with_it);
}

#[test]
fn unconfined_the_acts_of_a_broker_are_possible() {
    every_attempt(Role::Broker, "alone", gets_away_with_it);
}
