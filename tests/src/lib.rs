//! End-to-end scenarios: the real daemon, real clients, real uids.
//!
//! A scenario makes a [`Site`] (a directory, accounts, a configuration), starts a [`Daemon`] on it and talks to it by
//! [`ftp::Client`] or by a client people use. Every daemon listens on a loopback address of its own, so scenarios run
//! side by side; every wait is bounded and waits for a condition; dropping the daemon ends every process it started
//! and fails the scenario if one is left.
//!
//! Scenarios that need several uids need root; without it they say so and pass (CI runs as root), and `tests/run` lists
//! them at the end.
//! Not here: what a single crate can test about itself.
#![forbid(unsafe_code)]

pub mod daemon;
pub mod ftp;
pub mod procs;
pub mod programs;
pub mod puppet;
pub mod site;
mod skip;
pub mod slow;
pub mod tree;
pub mod wait;

pub use daemon::Daemon;
pub use site::{Account, Site};
pub use skip::skipped;
pub use wait::until;

/// Whether the scenario may go on: it needs root. Says so when it may not.
#[must_use]
pub fn root_or_skip(scenario: &str) -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    if !root {
        skipped(scenario, "needs root");
    }
    root
}
