//! `caisson-authd hash-password`: one line in, one PHC string out.
//!
//! Run by `caissonctl hash-password` and `caissond serve`, so that neither links argon2. Reads from: standard input;
//! from a terminal without echo, twice. Opens nothing; forbids core dumps and new privileges first.

use std::{
    fmt, io,
    io::Write,
    os::fd::{AsFd, BorrowedFd},
};

use child_ipc::types::Secret;
use rustix::{
    process::{DumpableBehavior, Resource, Rlimit},
    termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr},
};
use stored_hash::{Cost, Stored};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::verify::{Arena, OutOfMemory};

/// Why there is no hash.
#[derive(Debug)]
pub enum Error {
    /// No byte before the end of the line.
    Empty,
    /// More than [`Secret::MAX`] bytes.
    TooLong,
    /// Holds a byte that no FTP client can send in PASS (RFC 959 5.3.1).
    Unsendable,
    /// The two lines differ.
    Differ,
    /// Interrupted at the terminal.
    Interrupted,
    /// A call failed.
    Fault(&'static str, io::Error),
    /// Not enough memory for argon2id.
    Memory(OutOfMemory),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => write!(f, "the password is empty; write it on one line of standard input"),
            Error::TooLong => write!(f, "the password is longer than {} bytes; choose a shorter one", Secret::MAX),
            Error::Unsendable => write!(f, "the password holds NUL or carriage return, which no FTP client can send"),
            Error::Differ => write!(f, "the two passwords differ; nothing was made"),
            Error::Interrupted => write!(f, "interrupted; nothing was made"),
            Error::Fault(call, error) => write!(f, "{call}: {error}"),
            Error::Memory(failed) => write!(f, "out of memory: {} KiB are needed", failed.wanted),
        }
    }
}

/// Reads the password, prints its hash on standard output.
pub fn run() -> Result<(), Error> {
    harden()?;
    let stdin = io::stdin();
    let password = if isatty(&stdin) { ask(stdin.as_fd())? } else { read_line(stdin.as_fd())? };
    let stored = hash(password.expose())?;
    writeln!(io::stdout(), "{stored}").map_err(|error| Error::Fault("standard output", error))
}

/// Hashes `password` with [`Cost::DEFAULT`] and a fresh salt of 16 bytes.
pub fn hash(password: &[u8]) -> Result<Stored, Error> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| Error::Fault("getrandom", io::Error::other(error.to_string())))?;
    let (mut arena, mut digest) = (Arena::default(), Zeroizing::new([0; 32]));
    let computed = arena.compute(Cost::DEFAULT, password, &salt, digest.as_mut_slice());
    arena.free();
    computed.map_err(Error::Memory)?;
    Stored::new(Cost::DEFAULT, &salt, digest.as_slice())
        .ok_or_else(|| Error::Fault("hash", io::Error::other("salt or digest out of range")))
}

fn harden() -> Result<(), Error> {
    let fault = |call| move |errno: rustix::io::Errno| Error::Fault(call, errno.into());
    rustix::thread::set_no_new_privs(true).map_err(fault("prctl(PR_SET_NO_NEW_PRIVS)"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(fault("prctl(PR_SET_DUMPABLE)"))?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(Resource::Core, none).map_err(fault("setrlimit(RLIMIT_CORE)"))
}

/// Asks twice at a terminal. Prompts go to standard error: standard output is for the hash.
fn ask(terminal: BorrowedFd<'_>) -> Result<Secret, Error> {
    let _silent = Silent::new(terminal)?;
    let once = |prompt: &str| {
        eprint!("{prompt}");
        let line = read_line(terminal);
        // The end of the line was not echoed either.
        eprintln!();
        line
    };
    let (first, second) = (once("Password: ")?, once("Again: ")?);
    if bool::from(first.expose().ct_eq(second.expose())) { Ok(first) } else { Err(Error::Differ) }
}

/// Reads up to the end of a line or of the input, straight into the buffer that is wiped.
fn read_line(input: BorrowedFd<'_>) -> Result<Secret, Error> {
    // Room for the longest password, CR LF, and one byte that tells it is too long.
    let mut line = Zeroizing::new(vec![0; Secret::MAX + 3]);
    let mut length = 0;
    while let Some(room) = line.get_mut(length..).filter(|room| !room.is_empty()) {
        let read = rustix::io::retry_on_intr(|| rustix::io::read(input, &mut *room))
            .map_err(|errno| Error::Fault("standard input", errno.into()))?;
        let ends = read == 0 || room.iter().take(read).any(|&byte| byte == b'\n');
        length += read;
        if ends {
            break;
        }
    }
    password(line.get(..length).unwrap_or_default())
}

/// The password on the first line of `input`.
fn password(input: &[u8]) -> Result<Secret, Error> {
    const INTERRUPT: u8 = 3;
    let line = input.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.contains(&INTERRUPT) {
        Err(Error::Interrupted)
    } else if line.is_empty() {
        Err(Error::Empty)
    } else if line.contains(&0) || line.contains(&b'\r') {
        Err(Error::Unsendable)
    } else {
        Secret::new(line.to_vec()).ok_or(Error::TooLong)
    }
}

/// A terminal that neither echoes nor turns ^C into a signal, which would leave it so; restored when dropped.
struct Silent<'t> {
    terminal: BorrowedFd<'t>,
    before: Termios,
}

impl<'t> Silent<'t> {
    fn new(terminal: BorrowedFd<'t>) -> Result<Self, Error> {
        let fault = |call| move |errno: rustix::io::Errno| Error::Fault(call, errno.into());
        let before = tcgetattr(terminal).map_err(fault("tcgetattr"))?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Flush, &silent).map_err(fault("tcsetattr"))?;
        Ok(Silent { terminal, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        // Nothing is left to do about a terminal that has gone.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_password() {
        let is = |input: &[u8]| password(input).unwrap().expose().to_vec();
        assert_eq!(is(b"open sesame\nmore"), b"open sesame");
        assert_eq!(is(b"no newline"), b"no newline");
        assert_eq!(is(b"dos\r\n"), b"dos");
        assert_eq!(is(b" spaces \xff\n"), b" spaces \xff");
        assert_eq!(is(&[b'x'; Secret::MAX]).len(), Secret::MAX);
    }

    #[test]
    fn what_no_client_can_send_is_refused() {
        let why = |input: &[u8]| password(input).unwrap_err();
        assert!(matches!(why(b""), Error::Empty));
        assert!(matches!(why(b"\nx"), Error::Empty));
        assert!(matches!(why(b"\r\n"), Error::Empty));
        assert!(matches!(why(b"a\0b\n"), Error::Unsendable));
        assert!(matches!(why(b"a\rb\n"), Error::Unsendable));
        assert!(matches!(why(b"abc\x03\n"), Error::Interrupted));
        assert!(matches!(why(&[b'x'; Secret::MAX + 1]), Error::TooLong));
    }
}
