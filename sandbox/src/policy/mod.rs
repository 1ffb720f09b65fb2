//! The system calls of each role: rows of data with reasons, no logic beside the vocabulary they are written in.
//!
//! A role's list is [`common`] and its own rows (the `ssh` worker: the `ftp` worker's too). The monitor's filter is inherited by
//! every child it starts, so its list is its own rows and the union of everybody's (`seccomp.rs` merges them).
//! A reason names the file that needs the call, or starts with `libc:` or `std:` for what those do unasked.

pub mod authd;
pub mod broker;
pub mod common;
pub mod config;
pub mod monitor;
pub mod worker_ftp;
pub mod worker_ssh;

use crate::Role;

/// A system call a role may make.
#[derive(Debug)]
pub struct Row {
    /// libc's name for its number, `SYS_…`.
    pub symbol: &'static str,
    /// Its number on this architecture.
    pub number: libc::c_long,
    /// All of these must hold; none: any arguments.
    pub when: &'static [Cond],
    /// The file that needs it, and what for.
    pub reason: &'static str,
}

impl Row {
    /// The call's name, as in its manual page.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.symbol.trim_start_matches("SYS_")
    }
}

/// A condition on one argument, compared as the `int` the kernel takes it for unless the test says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cond {
    /// 0 to 5.
    pub arg: u8,
    /// What must hold.
    pub test: Test,
}

/// What must hold of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// It is one of these.
    OneOf(&'static [libc::c_int]),
    /// It has none of these bits.
    Without(libc::c_int),
    /// It is a null pointer.
    Null,
    /// It is the process itself.
    OwnPid,
}

/// A condition: `arg(2, Without(PROT_EXEC))`.
pub(crate) const fn arg(arg: u8, test: Test) -> Cond {
    Cond { arg, test }
}

/// A row without conditions.
macro_rules! call {
    ($call:ident, $reason:literal) => {
        $crate::policy::Row { symbol: stringify!($call), number: libc::$call, when: &[], reason: $reason }
    };
}

/// A row with conditions on its arguments.
macro_rules! when {
    ($call:ident, [$($cond:expr),+ $(,)?], $reason:literal) => {
        $crate::policy::Row { symbol: stringify!($call), number: libc::$call, when: &[$($cond),+], reason: $reason }
    };
}
pub(crate) use {call, when};

/// The rows a role's filter is made of, in groups that share no call.
///
/// For the monitor these are only the calls that no child needs or that children may make with fewer arguments.
#[must_use]
pub fn calls(role: Role) -> Vec<&'static [Row]> {
    match role {
        Role::Monitor => vec![monitor::CALLS, monitor::OLD],
        Role::Authd => vec![common::CALLS, authd::CALLS],
        Role::WorkerFtp => vec![common::CALLS, worker_ftp::CALLS],
        Role::WorkerSsh => vec![common::CALLS, worker_ftp::CALLS, worker_ssh::CALLS],
        Role::Broker => vec![common::CALLS, broker::CALLS],
        Role::Config => vec![common::CALLS, config::CALLS],
    }
}
