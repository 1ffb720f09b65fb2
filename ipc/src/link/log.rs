//! A log record on its way to the monitor, which stamps it with time and sending process and writes it.
//!
//! Not a link of its own: every child's record enum has a variant that carries [`LogRecord`].

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::types::{Blob, SessionId};

/// How much it matters; the order is that of syslog(3).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Something failed that should not.
    Error,
    /// An admin should look.
    Warning,
    /// Sessions, logins, transfers.
    #[default]
    Info,
    /// For whoever debugs.
    Debug,
}

/// What happened. The name is printed (kebab case) and documented in caissond(8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A client connected.
    Connect,
    /// A client left or was closed.
    Disconnect,
    /// A login was accepted.
    Login,
    /// A login was refused.
    LoginFailed,
    /// A file was sent or received.
    Transfer,
    /// A file or directory was changed without a transfer (delete, rename, mkdir, …).
    Change,
    /// An operation was refused.
    Refused,
    /// Another process broke the contract of a link.
    Breach,
    /// A fault on our side.
    Fault,
    /// Start, stop, reload, respawn.
    Process,
    /// A limit was reached.
    Limit,
}

/// One line of the log. `text` is `key=value` words; client bytes in it are escaped by whoever wrote it, and the
/// monitor escapes control bytes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// How much it matters.
    pub level: Level,
    /// What happened.
    pub event: Event,
    /// Whose session, if one is concerned.
    pub session: Option<SessionId>,
    /// The words.
    pub text: Blob<1536>,
}

impl LogRecord {
    /// The record in one line without its end, as caissond(8) describes it, but for the time. `sender` is escaped as well.
    pub fn line(&self, sender: &str) -> String {
        let mut line = format!("{} ", words(self.level));
        escape(sender.as_bytes(), &mut line);
        let _ = write!(line, ": {}", words(self.event));
        if let Some(session) = self.session {
            let _ = write!(line, " session={session}");
        }
        line.push(' ');
        escape(self.text.as_bytes(), &mut line);
        line
    }
}

/// Lines one process may write within a second.
pub const A_SECOND: u32 = 10_000;

/// One process's share of the log.
#[derive(Debug, Default)]
pub struct Gate {
    began: Option<Instant>,
    lines: u32,
    dropped: u32,
}

impl Gate {
    /// Whether another line may pass at `now`; the second value is how many were dropped in the time before.
    pub fn pass(&mut self, now: Instant) -> (bool, u32) {
        let mut told = 0;
        if self.began.is_none_or(|began| now.duration_since(began) >= Duration::from_secs(1)) {
            told = self.dropped;
            *self = Gate { began: Some(now), lines: 0, dropped: 0 };
        }
        self.lines += 1;
        let passes = self.lines <= A_SECOND;
        self.dropped += u32::from(!passes);
        (passes, told)
    }
}

/// Printable ASCII as it is, everything else as `\xNN`.
fn escape(bytes: &[u8], line: &mut String) {
    for &byte in bytes {
        match byte {
            b' '..=b'~' => line.push(byte.into()),
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
    }
}

/// The name of a level or event in caissond(8): `LoginFailed` is `login-failed`.
fn words(variant: impl std::fmt::Debug) -> String {
    let mut name = format!("{variant:?}");
    if let Some(second) = name.rfind(char::is_uppercase).filter(|&at| at > 0) {
        name.insert(second, '-');
    }
    name.make_ascii_lowercase();
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_dropped_and_counted() {
        let mut gate = Gate::default();
        let now = Instant::now();
        let passed = (0..A_SECOND + 5).filter(|_| gate.pass(now).0).count();
        assert_eq!(passed, A_SECOND as usize);
        assert_eq!(gate.pass(now + Duration::from_secs(1)), (true, 5));
    }
}
