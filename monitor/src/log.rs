//! The log: one record a line on standard error, stamped here with time and sending process.
//!
//! Runs as root. Reads: texts of children (hostile). Control bytes and everything beyond ASCII are escaped, lines are cut,
//! each process may fill only so many a second, and a reader that does not keep up loses lines rather than stop root.
//! Under systemd (`JOURNAL_STREAM`) each line begins with the priority of sd-daemon(3).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Instant, SystemTime};

use ipc::link::log::{Event, Gate, Level, LogRecord};
use ipc::types::Blob;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest line in bytes; a pipe takes up to PIPE_BUF (4096) whole or not at all.
const LONGEST: usize = 4000;

/// Where lines go.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Only records of at least this level are written.
    pub least: Level,
    /// What could not be enforced, by anybody.
    pub weaker: BTreeSet<String>,
    started: bool,
    /// Lines that wait until everybody is ready: if the start fails, one line says why, and no other.
    early: Vec<String>,
    priorities: bool,
    lost: u64,
}

impl Log {
    /// Writes records of at least this level.
    pub fn new(least: Level) -> Self {
        Log { least, priorities: std::env::var_os("JOURNAL_STREAM").is_some(), ..Log::default() }
    }

    /// Takes note of what could not be enforced, each sentence once, and not without end.
    pub fn note_weaker(&mut self, sentences: &str) {
        for what in sentences.split("; ").filter(|what| !what.is_empty()) {
            if self.weaker.len() < 64 && self.weaker.insert(what.to_owned()) {
                self.own(Level::Warning, Event::Process, format!("weaker: {what}"));
            }
        }
    }

    /// A line of the monitor's own.
    pub fn own(&mut self, level: Level, event: Event, text: impl AsRef<str>) {
        self.write("monitor", &LogRecord { level, event, session: None, text: Blob::cut(text.as_ref().as_bytes()) });
    }

    /// A line of a child, if its share allows.
    pub fn child(&mut self, name: &str, gate: &mut Gate, record: &LogRecord) {
        let (passes, dropped) = gate.pass(Instant::now());
        if dropped > 0 {
            self.own(Level::Warning, Event::Limit, format!("log lines dropped process=\"{name}\" lines={dropped}"));
        }
        if passes {
            self.write(name, record);
        }
    }

    fn write(&mut self, name: &str, record: &LogRecord) {
        if record.level > self.least {
            return;
        }
        let mut line = self.format(SystemTime::now(), name, record);
        if self.lost > 0 {
            let _ = write!(line, " log_lines_lost_before={}", self.lost);
        }
        line.push('\n');
        if self.started {
            self.emit(&line);
        } else if self.early.len() < 1000 {
            self.early.push(line);
        }
    }

    /// Everybody is ready: what waited is written, and from now on everything at once.
    pub fn begin(&mut self) {
        self.started = true;
        std::mem::take(&mut self.early).iter().for_each(|line| self.emit(line));
    }

    fn emit(&mut self, line: &str) {
        let stderr = io::stderr();
        let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
        let writable = poll(&mut ready, Some(&Timespec::default())).is_ok_and(|n| n == 1);
        match writable && stderr.lock().write_all(line.as_bytes()).is_ok() {
            true => self.lost = 0,
            false => self.lost += 1,
        }
    }

    fn format(&self, now: SystemTime, name: &str, record: &LogRecord) -> String {
        let mut line = String::new();
        if self.priorities {
            // Those of syslog(3).
            let priority = 3 + record.level as u8 + u8::from(record.level >= Level::Info);
            let _ = write!(line, "<{priority}>");
        }
        let _ = write!(line, "{} {}", humantime::format_rfc3339_millis(now), record.line(name));
        line.truncate(LONGEST);
        line
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ipc::types::SessionId;

    use super::*;

    fn line(text: &[u8], priorities: bool) -> String {
        let log = Log { least: Level::Debug, priorities, ..Log::default() };
        let record = LogRecord {
            level: Level::Info,
            event: Event::LoginFailed,
            session: Some(SessionId(7)),
            text: Blob::cut(text),
        };
        log.format(SystemTime::UNIX_EPOCH + Duration::from_secs(951_782_400), "worker 2", &record)
    }

    #[test]
    fn a_line_has_time_level_process_event_session_and_text() {
        assert_eq!(line(b"user=bob", false), "2000-02-29T00:00:00.000Z info worker 2: login-failed session=7 user=bob");
        assert!(line(b"", true).starts_with("<6>2000-"));
    }

    #[test]
    fn a_child_cannot_begin_a_line_or_move_the_cursor() {
        assert!(
            line(b"a\n<0>forged \x1b[2J \xc2\x9b\x7f", false).ends_with("a\\x0a<0>forged \\x1b[2J \\xc2\\x9b\\x7f")
        );
    }

    #[test]
    fn the_longest_text_still_fits_a_pipe_in_one_piece() {
        assert!(line(&[0xff; 1536], true).len() < 4096 - 64);
    }
}
