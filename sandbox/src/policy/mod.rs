//! The system calls of the monitor: rows of data with reasons, no logic beside the vocabulary they are written in.
//!
//! A filter is inherited by every child the monitor starts, so its list is as long as all of theirs; sandbox/child/tests/rows.rs
//! sees that nothing is missing. A reason names the file that needs the call, or starts with `libc:` or `std:` for what those do
//! unasked. Not here: the lists of the children (sandbox/child/src/policy).

pub mod common;
pub mod inherited;
pub mod monitor;

/// The rows a filter is made of, in groups; a row takes the place of one of the same call in a group before.
pub type Policy = Vec<&'static [Row]>;

/// A system call a process may make.
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
#[must_use]
pub const fn arg(arg: u8, test: Test) -> Cond {
    Cond { arg, test }
}

/// A row without conditions.
#[macro_export]
macro_rules! call {
    ($call:ident, $reason:literal) => {
        $crate::policy::Row { symbol: stringify!($call), number: libc::$call, when: &[], reason: $reason }
    };
}

/// A row with conditions on its arguments.
#[macro_export]
macro_rules! when {
    ($call:ident, [$($cond:expr),+ $(,)?], $reason:literal) => {
        $crate::policy::Row { symbol: stringify!($call), number: libc::$call, when: &[$($cond),+], reason: $reason }
    };
}
pub use {call, when};

/// The monitor's rows.
#[must_use]
pub fn monitor() -> Policy {
    vec![common::CALLS, inherited::CALLS, monitor::CALLS, monitor::OLD]
}
