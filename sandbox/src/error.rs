//! What can go wrong on the way into the sandbox. All of it is ours or the kernel's; no other process is involved.

use std::fmt;
use std::io;

/// Why a process could not be confined.
#[derive(Debug)]
pub enum Error {
    /// A system call failed that has to work with or without a sandbox.
    Fault {
        /// The call.
        call: &'static str,
        /// What the kernel answered.
        errno: io::Error,
    },
    /// The kernel, or a container around us, cannot enforce a part of the sandbox.
    Unenforced {
        /// The part: "Landlock", "seccomp filter", …
        what: &'static str,
        /// What the kernel answered.
        why: String,
    },
    /// The caller's order makes no sense.
    Refused(&'static str),
    /// Claimed to be in force, looked at afterwards, and is not.
    Broken(&'static str),
}

impl Error {
    /// The kernel cannot enforce a part; why, in its words.
    pub fn unenforced(what: &'static str, why: impl fmt::Display) -> Self {
        Error::Unenforced { what, why: why.to_string() }
    }

    /// For `map_err`: a failed call that has to work.
    pub fn fault<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> Self {
        move |e| Error::Fault { call, errno: e.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Fault { call, errno } => write!(f, "sandbox: {call}: {errno}"),
            Error::Unenforced { what, why } => write!(
                f,
                "sandbox: {what} cannot be enforced here ({why}); to start without it, set sandbox = \"best-effort\" in caisson.toml(5)"
            ),
            Error::Refused(why) => write!(f, "sandbox: {why}"),
            Error::Broken(what) => write!(f, "sandbox: {what} is not in force although the kernel accepted it"),
        }
    }
}

impl std::error::Error for Error {}
