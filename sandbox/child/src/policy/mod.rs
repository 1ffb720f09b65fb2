//! The system calls of each child: rows of data with reasons, as sandbox/src/policy has them for the monitor.
//!
//! A child's list is [`common`] and its own rows (the `ssh` worker: the `ftp` worker's too). Every call on it is on the monitor's
//! list as well, under whose filter children are born (tests/rows.rs).

pub mod authd;
pub mod broker;
pub mod config;
pub mod worker_ftp;
pub mod worker_ssh;

use crate::Role;

pub use sandbox::policy::*;

/// The rows a role's filter is made of, in groups.
#[must_use]
pub fn calls(role: Role) -> Policy {
    match role {
        Role::Authd => vec![common::CALLS, authd::CALLS],
        Role::WorkerFtp => vec![common::CALLS, worker_ftp::CALLS],
        Role::WorkerSsh => vec![common::CALLS, worker_ftp::CALLS, worker_ssh::CALLS],
        Role::Broker => vec![common::CALLS, broker::CALLS],
        Role::Config => vec![common::CALLS, config::CALLS],
    }
}
