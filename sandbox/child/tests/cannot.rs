//! A kernel or container that cannot enforce a part: the start stops and names it, or `best-effort` reports it.

mod common;

use child_sandbox::Role;
use common::{Place, Start, start};

fn first_words(begun: Start, how: &str, role: impl Into<Option<Role>>) -> String {
    let place = Place::new();
    let process = start(begun, how, role, "all", "report", &place);
    let said = process.hear();
    let _ = process.end();
    said
}

#[test]
fn without_landlock_nothing_starts_and_the_error_names_the_remedy() {
    for begun in Start::possible() {
        for role in [Role::WorkerFtp, Role::WorkerSsh, Role::Authd, Role::Broker] {
            let said = first_words(begun, "no-landlock", role);
            assert!(said.starts_with("error: sandbox: Landlock cannot be enforced"), "{role:?}: {said}");
            assert!(said.contains("sandbox = \"best-effort\" in caisson.toml(5)"), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}

#[test]
fn best_effort_without_landlock_starts_and_reports_it() {
    for begun in Start::possible() {
        let said = first_words(begun, "no-landlock-best-effort", Role::WorkerFtp);
        assert!(said.starts_with("ready\n") && said.contains("Landlock not enforced"), "{said}");
    }
}

#[test]
fn a_container_that_forbids_mounts_stops_the_start() {
    if !common::is_root() {
        return;
    }
    for role in [Role::WorkerFtp, Role::Authd, Role::Broker] {
        let said = first_words(Start::AsRoot, "no-mounts", role);
        assert!(said.starts_with("error: sandbox: a root directory and namespaces of its own cannot"), "{said}");
        let said = first_words(Start::AsRoot, "no-mounts-best-effort", role);
        assert!(said.contains("namespaces of its own not enforced"), "{said}");
    }
}

#[test]
fn started_without_root_the_report_says_what_is_weaker() {
    let said = first_words(Start::AsUser, "under-monitor", Role::Broker);
    assert!(said.contains("started without root: broker keeps the uid"), "{said}");
}

#[test]
fn started_as_root_with_all_of_it_nothing_is_weaker() {
    if !common::is_root() {
        return;
    }
    for role in Role::ALL.map(Some).into_iter().chain([None]) {
        assert_eq!(first_words(Start::AsRoot, "confined", role).trim_end(), "ready", "{role:?}");
    }
}
