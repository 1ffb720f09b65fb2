//! Why authd ends before it is told to.

use std::{fmt, io};

use child_ipc::Breach;

/// A reason to end.
#[derive(Debug)]
pub enum Error {
    /// The monitor broke the contract of its link.
    Violation(Breach),
    /// A setting that cannot be.
    Refused(&'static str),
    /// The sandbox does not close.
    Sandbox(child_sandbox::Error),
    /// Our side: a call failed.
    Fault {
        /// The call.
        call: &'static str,
        /// What the kernel answered.
        error: io::Error,
    },
}

impl Error {
    /// For `map_err`: a failed call.
    pub fn fault<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Error::Fault { call, error: error.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Violation(Breach::Malformed) => write!(
                f,
                "malformed record from caissond; if programs of two builds were mixed, install all of one build"
            ),
            Error::Violation(breach) => write!(f, "caissond broke the contract of its link: {breach}"),
            Error::Refused(why) => write!(f, "{why}"),
            Error::Sandbox(error) => write!(f, "{error}"),
            Error::Fault { call, error } => write!(f, "{call}: {error}"),
        }
    }
}

impl std::error::Error for Error {}
