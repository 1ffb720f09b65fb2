//! Checks that wait for a thread: bounded, and every source network has the same share.
//!
//! Networks take turns, one check a turn, so a flood from one of them makes its own checks wait, not others'.
//! Passwords wait in their wiped buffers. Not here: cached logins, which never wait (checks.rs).

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
};

use ipc::{
    link::worker_authd::Check,
    types::{SessionId, WorkerId},
};

use crate::network;

/// Most checks waiting at once.
pub const MOST: usize = 512;
/// Most of them from one network.
pub const MOST_OF_A_NETWORK: usize = 128;

/// A check and who asked for it.
pub struct Waiting {
    /// Whose session.
    pub worker: WorkerId,
    /// What was asked.
    pub check: Check,
}

/// There is no room; the check is gone and its password wiped.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// The waiting room.
#[derive(Default)]
pub struct Queue {
    /// Networks with a check waiting, the next one to be served first. Each is in [`Queue::checks`] too.
    turns: VecDeque<IpAddr>,
    checks: HashMap<IpAddr, VecDeque<Waiting>>,
    length: usize,
}

impl Queue {
    /// Puts a check at the end of its network's line.
    pub fn push(&mut self, waiting: Waiting) -> Result<(), Full> {
        let network = network::network(waiting.check.source);
        let ahead = self.checks.get(&network).map_or(0, VecDeque::len);
        if self.length >= MOST || ahead >= MOST_OF_A_NETWORK {
            return Err(Full);
        }
        if ahead == 0 {
            self.turns.push_back(network);
        }
        self.checks.entry(network).or_default().push_back(waiting);
        self.length += 1;
        Ok(())
    }

    /// Takes the check whose turn it is.
    pub fn pop(&mut self) -> Option<Waiting> {
        let network = self.turns.pop_front()?;
        let line = self.checks.get_mut(&network)?;
        let waiting = line.pop_front();
        self.length -= usize::from(waiting.is_some());
        if line.is_empty() {
            self.checks.remove(&network);
        } else {
            self.turns.push_back(network);
        }
        waiting
    }

    /// Forgets the check of one session.
    pub fn forget(&mut self, worker: WorkerId, session: SessionId) {
        self.keep(|waiting| waiting.worker != worker || waiting.check.session != session);
    }

    /// Forgets everything a worker has asked.
    pub fn forget_worker(&mut self, worker: WorkerId) {
        self.keep(|waiting| waiting.worker != worker);
    }

    fn keep(&mut self, wanted: impl Fn(&Waiting) -> bool) {
        for line in self.checks.values_mut() {
            line.retain(&wanted);
        }
        self.checks.retain(|_, line| !line.is_empty());
        self.turns.retain(|network| self.checks.contains_key(network));
        self.length = self.checks.values().map(VecDeque::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use ipc::types::{Secret, UserName};

    use super::*;

    fn from(source: [u8; 4], session: u32) -> Waiting {
        let user = UserName::new(b"alice").unwrap();
        let password = Secret::new(b"x".to_vec()).unwrap();
        let check = Check { session: SessionId(session), user, password, source: source.into() };
        Waiting { worker: WorkerId(session % 2), check }
    }

    fn order(queue: &mut Queue) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop()).map(|waiting| waiting.check.session.0).collect()
    }

    #[test]
    fn networks_take_turns_and_each_keeps_its_order() {
        let mut queue = Queue::default();
        for session in 0..4 {
            queue.push(from([10, 0, 0, 1], session)).unwrap();
        }
        queue.push(from([10, 0, 1, 1], 4)).unwrap();
        queue.push(from([10, 0, 2, 1], 5)).unwrap();
        queue.push(from([10, 0, 1, 9], 6)).unwrap();
        assert_eq!(order(&mut queue), [0, 4, 5, 1, 6, 2, 3]);
    }

    #[test]
    fn one_network_cannot_fill_the_queue_and_all_together_cannot_overfill_it() {
        let mut queue = Queue::default();
        for i in 0..MOST {
            let network = (i / MOST_OF_A_NETWORK) as u8;
            queue.push(from([10, 0, network, 1], i as u32)).unwrap();
            if i + 1 == MOST_OF_A_NETWORK {
                assert_eq!(queue.push(from([10, 0, 0, 200], 9999)), Err(Full));
            }
        }
        assert_eq!(queue.push(from([10, 0, 99, 1], 9999)), Err(Full));
        assert_eq!(order(&mut queue).len(), MOST);
        queue.push(from([10, 0, 99, 1], 1)).unwrap();
    }

    #[test]
    fn what_is_forgotten_is_not_served_and_makes_room() {
        let mut queue = Queue::default();
        for session in 0..6 {
            queue.push(from([10, 0, session as u8 / 3, 1], session)).unwrap();
        }
        queue.forget(WorkerId(0), SessionId(2));
        queue.forget(WorkerId(1), SessionId(4));
        queue.forget_worker(WorkerId(1));
        assert_eq!(order(&mut queue), [0, 4]);
        assert_eq!(queue.length, 0);
    }
}
