//! Slows repeated failure, per source and per name, by answering later.
//!
//! Only the answer waits: no thread does, and a right password is never delayed, so nobody can lock an account by
//! failing on purpose. A client that hangs up instead of waiting is not slowed here; its share of the queue
//! (queue.rs) and the connection limits of the workers bound it.
//! Failures are forgiven one by one as time passes, all at once by a login that succeeds.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    time::{Duration, Instant},
};

use child_ipc::types::UserName;

use crate::network;

/// Most sources, and most names, remembered at once; the ones whose last failure is longest ago are forgotten first.
const MOST: usize = 4096;
/// One failure is forgiven after this long.
const FORGIVEN: Duration = Duration::from_secs(60);

/// How long failures make the next answer wait.
struct Rule {
    /// Failures that cost nothing.
    free: u32,
    /// Added by each one after that.
    step: Duration,
    /// How many steps at most.
    steps: u32,
}

/// Third failure 0.5 s, and so on to 5 s.
const SOURCE: Rule = Rule { free: 2, step: Duration::from_millis(500), steps: 10 };
/// Tenth failure 0.1 s, and so on to 1 s: everybody's failures on this name count, also its owner's.
const NAME: Rule = Rule { free: 9, step: Duration::from_millis(100), steps: 10 };

/// Who failed how often.
#[derive(Default)]
pub struct Delays {
    sources: Failures<IpAddr>,
    names: Failures<UserName>,
}

impl Delays {
    /// Notes a failure; returns how long its answer waits.
    pub fn failed(&mut self, source: IpAddr, user: &UserName, now: Instant) -> Duration {
        let by_source = self.sources.add(network::host(source), &SOURCE, now);
        let by_name = self.names.add(user.clone(), &NAME, now);
        by_source.max(by_name)
    }

    /// Forgives this source and this name.
    pub fn succeeded(&mut self, source: IpAddr, user: &UserName) {
        self.sources.0.remove(&network::host(source));
        self.names.0.remove(user);
    }
}

struct Score {
    failures: u32,
    last: Instant,
}

impl Score {
    fn left(&self, now: Instant) -> u32 {
        let forgiven = now.saturating_duration_since(self.last).as_secs() / FORGIVEN.as_secs();
        self.failures.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}

struct Failures<K>(HashMap<K, Score>);

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Failures(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone> Failures<K> {
    fn add(&mut self, who: K, rule: &Rule, now: Instant) -> Duration {
        if self.0.len() >= MOST && !self.0.contains_key(&who) {
            self.make_room(now);
        }
        let before = self.0.get(&who).map_or(0, |score| score.left(now));
        let failures = (before + 1).min(rule.free + rule.steps);
        self.0.insert(who, Score { failures, last: now });
        rule.step * failures.saturating_sub(rule.free)
    }

    fn make_room(&mut self, now: Instant) {
        self.0.retain(|_, score| score.left(now) > 0);
        if self.0.len() >= MOST {
            let oldest = self.0.iter().min_by_key(|(_, score)| score.last).map(|(who, _)| who.clone());
            oldest.and_then(|who| self.0.remove(&who));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserName {
        UserName::new(name.as_bytes()).unwrap()
    }

    #[test]
    fn the_third_failure_of_a_source_waits_and_the_wait_grows_to_its_end() {
        let (mut delays, now) = (Delays::default(), Instant::now());
        let source = "192.0.2.1".parse().unwrap();
        let waits: Vec<u128> =
            (0..15).map(|i| delays.failed(source, &user(&format!("u{i}")), now).as_millis()).collect();
        assert_eq!(waits[..4], [0, 0, 500, 1000]);
        assert_eq!(waits[11..], [5000, 5000, 5000, 5000]);
        assert_eq!(delays.failed("192.0.2.2".parse().unwrap(), &user("x"), now), Duration::ZERO);
    }

    #[test]
    fn failures_from_everywhere_on_one_name_wait_a_second_at_most() {
        let (mut delays, now) = (Delays::default(), Instant::now());
        let wait = (0..100u8).map(|i| delays.failed([10, 0, i, 1].into(), &user("alice"), now)).max();
        assert_eq!(wait, Some(Duration::from_secs(1)));
    }

    #[test]
    fn time_and_success_forgive() {
        let (mut delays, now) = (Delays::default(), Instant::now());
        let source = "2001:db8::1".parse().unwrap();
        for _ in 0..4 {
            delays.failed(source, &user("alice"), now);
        }
        let later = now + FORGIVEN * 2;
        assert_eq!(delays.failed(source, &user("alice"), later), Duration::from_millis(500));
        delays.succeeded(source, &user("alice"));
        assert_eq!(delays.failed(source, &user("alice"), later), Duration::ZERO);
    }

    #[test]
    fn the_tables_stay_bounded() {
        let (mut delays, now) = (Delays::default(), Instant::now());
        for i in 0..(MOST as u32 + 500) {
            delays.failed(std::net::Ipv4Addr::from_bits(i).into(), &user(&i.to_string()), now);
        }
        assert!(delays.sources.0.len() <= MOST && delays.names.0.len() <= MOST);
    }
}
