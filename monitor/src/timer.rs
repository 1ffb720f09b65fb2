//! Time: what is to be done later, the next thing first. There is one place that waits for it: monitor.rs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ipc::types::BrokerId;

/// What to do when its time has come, if it is still to be done then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Start a process again: 0 is authd, others are worker slots.
    Respawn(usize),
    /// A broker had its time to start, or to stop.
    BrokerLate(BrokerId),
    /// A broker may have been idle long enough.
    BrokerIdle(BrokerId),
    /// The reading with this number had its time.
    ReadingLate(u32),
    /// Files of certificates may have changed.
    Look,
    /// Everybody had time to start.
    StartOver,
    /// Everybody had time to stop.
    StopOver,
    /// Everybody had time to die.
    DieOver,
}

/// Alarms.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Instant, Alarm)>);

impl Timers {
    /// Rings after `delay`.
    pub fn set(&mut self, delay: Duration, alarm: Alarm) {
        self.0.insert((Instant::now() + delay, alarm));
    }

    /// How long until the next one; `None` if there is none.
    pub fn next(&self) -> Option<Duration> {
        self.0.first().map(|(when, _)| when.saturating_duration_since(Instant::now()))
    }

    /// Takes one whose time has come.
    pub fn due(&mut self) -> Option<Alarm> {
        self.0.first().filter(|(when, _)| *when <= Instant::now())?;
        self.0.pop_first().map(|(_, alarm)| alarm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_ring_in_order_and_not_before_their_time() {
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.set(Duration::from_secs(3600), Alarm::StopOver);
        timers.set(Duration::ZERO, Alarm::Respawn(1));
        assert_eq!((timers.due(), timers.due()), (Some(Alarm::Respawn(1)), None));
    }
}
