//! What the monitor waits for: links, signals, the control socket, and time. There is one place that waits: monitor.rs.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

use ipc::types::{BrokerId, WorkerId};

/// Whose event it is; travels through epoll as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Signals,
    Authd,
    Worker(WorkerId),
    Broker(BrokerId),
    /// The control socket itself.
    Control,
    /// A connection to it.
    Client(u32),
}

impl Token {
    /// As epoll carries it.
    pub fn number(self) -> u64 {
        let (kind, id): (u64, u32) = match self {
            Token::Signals => (0, 0),
            Token::Authd => (1, 0),
            Token::Worker(id) => (2, id.0),
            Token::Broker(id) => (3, id.0),
            Token::Control => (4, 0),
            Token::Client(id) => (5, id),
        };
        kind << 32 | u64::from(id)
    }

    /// `None` for a number no token has.
    pub fn from_number(number: u64) -> Option<Token> {
        let id = u32::try_from(number & 0xffff_ffff).ok()?;
        Some(match number >> 32 {
            0 => Token::Signals,
            1 => Token::Authd,
            2 => Token::Worker(WorkerId(id)),
            3 => Token::Broker(BrokerId(id)),
            4 => Token::Control,
            5 => Token::Client(id),
            _ => return None,
        })
    }
}

/// What to do when its time has come, if it is still to be done then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Start a process again: 0 is authd, others are worker slots.
    Respawn(usize),
    /// A broker had its time to start.
    BrokerStart(BrokerId),
    /// A broker may have been idle long enough.
    BrokerIdle(BrokerId),
    /// A broker had its time to stop.
    BrokerStop(BrokerId),
    /// Everybody had time to start.
    StartOver,
    /// Everybody had time to stop.
    StopOver,
}

/// Alarms, the next one first.
#[derive(Debug, Default)]
pub(crate) struct Timers(BinaryHeap<Reverse<(Instant, Alarm)>>);

impl Timers {
    /// Rings after `delay`.
    pub fn set(&mut self, delay: Duration, alarm: Alarm) {
        self.0.push(Reverse((Instant::now() + delay, alarm)));
    }

    /// How long until the next one; `None` if there is none.
    pub fn next(&self) -> Option<Duration> {
        self.0.peek().map(|Reverse((when, _))| when.saturating_duration_since(Instant::now()))
    }

    /// Takes one whose time has come.
    pub fn due(&mut self) -> Option<Alarm> {
        self.0.peek().filter(|Reverse((when, _))| *when <= Instant::now())?;
        self.0.pop().map(|Reverse((_, alarm))| alarm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_way_through_epoll() {
        let tokens = [Token::Signals, Token::Authd, Token::Worker(WorkerId(u32::MAX)), Token::Broker(BrokerId(7))];
        for token in tokens.into_iter().chain([Token::Control, Token::Client(3)]) {
            assert_eq!(Token::from_number(token.number()), Some(token));
        }
        assert_eq!(Token::from_number(u64::MAX), None);
    }

    #[test]
    fn alarms_ring_in_order_and_not_before_their_time() {
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.set(Duration::from_secs(3600), Alarm::StopOver);
        timers.set(Duration::ZERO, Alarm::Respawn(1));
        assert_eq!((timers.due(), timers.due()), (Some(Alarm::Respawn(1)), None));
    }
}
