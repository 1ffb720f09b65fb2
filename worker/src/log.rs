//! Lines for the log, on their way to the monitor: gathered for a moment, so that the root process is not woken for
//! every file, and limited where a client can cause them without being logged in.

use std::{collections::VecDeque, fmt};

use child_ipc::{
    Record,
    link::{
        log::{Event, Level, LogRecord},
        monitor_worker::FromWorker,
    },
    types::{Blob, SessionId},
};

/// Lines of ordinary events wait at most this long, in milliseconds.
pub const LINGER_MS: u64 = 100;
/// So many are sent when they are there earlier.
const BATCH: usize = 64;
/// The most that a line takes in a record beside its text, in bytes; the record itself takes less than one of these.
const OVERHEAD: usize = 16;
/// Most lines held when the monitor does not take them.
const MOST: usize = 4096;
/// Lines a second that clients can cause without being logged in.
const PER_SECOND: u32 = 200;

/// Lines that wait.
#[derive(Debug, Default)]
pub struct Log {
    lines: VecDeque<LogRecord>,
    oldest: u64,
    urgent: bool,
    second: u64,
    in_second: u32,
    left_out: u64,
}

impl Log {
    /// Takes a line. Client bytes in `text` are escaped already.
    pub fn add(&mut self, level: Level, event: Event, session: Option<SessionId>, text: fmt::Arguments<'_>, now: u64) {
        if self.lines.len() >= MOST || (is_limited(event) && !self.allows(now)) {
            self.left_out += 1;
            return;
        }
        if self.lines.is_empty() {
            self.oldest = now;
        }
        self.urgent |= level <= Level::Warning;
        self.lines.push_back(LogRecord { level, event, session, text: Blob::cut(text.to_string().as_bytes()) });
    }

    /// When lines are to be sent; `None` when there is none.
    pub fn due(&self) -> Option<u64> {
        if self.lines.is_empty() {
            None
        } else if self.urgent || self.lines.len() >= BATCH {
            Some(0)
        } else {
            Some(self.oldest + LINGER_MS)
        }
    }

    /// The next lines to send: as many as one record holds, oldest first; none when there are none.
    pub fn take(&mut self) -> Vec<LogRecord> {
        let mut room = FromWorker::CAP - OVERHEAD;
        let mut fit = 0;
        for line in &self.lines {
            let bytes = line.text.as_bytes().len() + OVERHEAD;
            if bytes > room {
                break;
            }
            (room, fit) = (room - bytes, fit + 1);
        }
        if fit == self.lines.len() {
            self.urgent = false;
        }
        self.lines.drain(..fit).collect()
    }

    fn allows(&mut self, now: u64) -> bool {
        let second = now / 1000;
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
            let left_out = std::mem::take(&mut self.left_out);
            if left_out > 0 {
                let text = format!("reason=\"log lines left out\" lines={left_out}");
                let text = Blob::cut(text.as_bytes());
                self.lines.push_back(LogRecord { level: Level::Warning, event: Event::Limit, session: None, text });
            }
        }
        self.in_second += 1;
        self.in_second <= PER_SECOND
    }
}

fn is_limited(event: Event) -> bool {
    matches!(event, Event::Connect | Event::Disconnect | Event::LoginFailed | Event::Refused | Event::Limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_instead_of_written() {
        let mut log = Log::default();
        for _ in 0..1000 {
            log.add(Level::Info, Event::Connect, None, format_args!("x"), 5000);
        }
        log.add(Level::Info, Event::Transfer, None, format_args!("kept"), 5000);
        log.add(Level::Info, Event::Connect, None, format_args!("x"), 6000);
        let lines: Vec<LogRecord> =
            std::iter::from_fn(|| Some(log.take()).filter(|l| !l.is_empty())).flatten().collect();
        assert_eq!(lines.len(), 200 + 1 + 2);
        assert!(lines.iter().any(|line| line.text.to_string().ends_with("lines=800")));
    }

    #[test]
    fn the_longest_lines_fit_a_record() {
        let mut log = Log::default();
        for _ in 0..5 {
            log.add(Level::Error, Event::Transfer, Some(SessionId(u32::MAX)), format_args!("{}", "x".repeat(1536)), 0);
        }
        let mut buffer = vec![0; FromWorker::CAP];
        for expected in [2, 2, 1, 0] {
            let lines = log.take();
            assert_eq!(lines.len(), expected);
            assert!(child_ipc::wire::encode(&FromWorker::Lines(lines), &mut buffer).is_some());
        }
    }

    #[test]
    fn ordinary_lines_linger_and_warnings_do_not() {
        let mut log = Log::default();
        log.add(Level::Info, Event::Transfer, None, format_args!("x"), 5000);
        assert_eq!(log.due(), Some(5000 + LINGER_MS));
        log.add(Level::Warning, Event::Transfer, None, format_args!("x"), 5001);
        assert_eq!(log.due(), Some(0));
    }
}
