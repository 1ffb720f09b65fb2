//! What can go wrong while measuring.
//!
//! A missed bar is a result, not an error; these are faults in the measuring itself.

use std::fmt;
use std::io;

/// One fault, with enough words to act on it.
#[derive(Debug)]
pub enum Error {
    /// A system call or program failed; the words say which.
    Call(String, io::Error),
    /// A server answered something else than the protocol or the row expects.
    Reply {
        /// The command that was sent, without its line end.
        sent: String,
        /// The whole answer.
        got: String,
    },
    /// A timed section did not end in the time it was given.
    Late(String),
    /// Anything else, in words.
    Other(String),
}

/// The result of anything here.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(what, cause) => write!(f, "{what}: {cause}"),
            Self::Reply { sent, got } => write!(f, "{sent:?} was answered {:?}", got.trim_end()),
            Self::Late(what) => write!(f, "{what}: not done in time"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

/// Names the call when it fails: `open(path).call(|| format!("open {path}"))`.
pub trait Call<T> {
    /// Turns any I/O or errno failure into an [`Error::Call`], or [`Error::Late`] where a socket's time limit ran out.
    fn call(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Call<T> for std::result::Result<T, E> {
    fn call(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| {
            let cause = cause.into();
            match cause.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Late(what()),
                _ => Error::Call(what(), cause),
            }
        })
    }
}
