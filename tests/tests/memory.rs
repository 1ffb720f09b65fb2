//! What the daemon weighs: the proportional set size of all its processes together (issue 2, bars).
//!
//! The promise is the release build's, so that is what runs if it is there (`make all`); the debug build has the
//! same working set but its programs are several times larger, and gets twice the room when idle.

use std::sync::{Mutex, MutexGuard, PoisonError};

use e2e::{Daemon, Site, ftp::Client, programs, root_or_skip, wait::within};

const MIB: u64 = 1 << 20;

fn daemon() -> (Daemon, bool) {
    let mut site = Site::new();
    site.set("max_sessions_per_address = 0");
    site.programs = programs::release_if_there();
    let release = site.programs.ends_with("release");
    (Daemon::start(site), release)
}

/// The weight once it no longer changes: right behind a burst of logins, freed pages are still being given back.
fn settled(daemon: &Daemon) -> u64 {
    let mut last = daemon.pss();
    let calm = within(std::time::Duration::from_secs(5), || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let now = daemon.pss();
        let still = now.abs_diff(last) < 16 << 10;
        last = now;
        still.then_some(now)
    });
    calm.unwrap_or(last)
}

/// One scenario at a time: a daemon beside it would bear a part of the pages that both share, and leave it when it ends. (Under
/// cargo-nextest each has its own process, and tests/nextest.toml says so.)
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn the_idle_daemon_stays_below_ten_mebibytes() {
    if !root_or_skip("idle memory") {
        return;
    }
    let _alone = alone();
    let (daemon, release) = daemon();
    let idle = settled(&daemon);
    for process in daemon.everybody() {
        let (pss, dirty) = (process.memory("Pss") >> 10, process.memory("Private_Dirty") >> 10);
        println!("{:16} {pss:6} KiB, {dirty} KiB private dirty", process.status()["Name"]);
    }
    println!("idle: {:.2} MiB ({})", mib(idle), if release { "release" } else { "debug" });
    let most = if release { 10 } else { 20 };
    assert!(idle < most * MIB, "{:.2} MiB", mib(idle));
}

#[test]
fn a_thousand_idle_sessions_of_one_user_cost_less_than_a_mebibyte() {
    if !root_or_skip("memory of sessions") {
        return;
    }
    let _alone = alone();
    let (daemon, _) = daemon();
    // The first sessions start the broker and fill what is kept for the account; both workers have one.
    let _warm = daemon.login_at_two_workers("alice");
    let before = settled(&daemon);
    let mut sessions: Vec<Client> = Vec::new();
    for target in [200, 1000] {
        while sessions.len() < target {
            sessions.push(daemon.login("alice"));
        }
        let grown = settled(&daemon).saturating_sub(before);
        println!("{target} sessions: {:.2} MiB, {} bytes each", mib(grown), grown / target as u64);
        assert!(grown < MIB, "{target} sessions cost {:.2} MiB", mib(grown));
    }
    sessions.iter_mut().for_each(Client::in_step);
}

#[allow(clippy::cast_precision_loss, reason = "a figure to print")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}
