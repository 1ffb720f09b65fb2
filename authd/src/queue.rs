//! Checks that wait for a thread: bounded, and every worker has the same share, and in it every source network.
//!
//! Networks take turns, one check a turn, so a flood from one of them makes its own checks wait, not others'. Which
//! network a check comes from is a worker's word; a worker that was taken over may invent as many as it likes, so workers
//! take turns first, and none fills more than half of the room.
//! Passwords wait in their wiped buffers. Not here: cached logins, which never wait (checks.rs).

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
};

use child_ipc::{
    link::worker_authd::Check,
    types::{SessionId, WorkerId},
};

use crate::{certificate::Shown, network};

/// Most checks waiting at once.
pub const MOST: usize = 512;
/// Most of them from one worker.
pub const MOST_OF_A_WORKER: usize = MOST / 2;
/// Most of them from one network by one worker.
pub const MOST_OF_A_NETWORK: usize = 128;

/// A check and who asked for it.
pub struct Waiting {
    /// Whose session.
    pub worker: WorkerId,
    /// What was asked.
    pub check: Check,
    /// What of it is about a certificate, judged.
    pub shown: Shown,
}

/// There is no room; the check is gone and its password wiped.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// The waiting room.
#[derive(Default)]
pub struct Queue {
    workers: BTreeMap<WorkerId, Lines>,
    /// Who was served last: the turn is the next one's.
    last: Option<WorkerId>,
}

impl Queue {
    /// Puts a check at the end of its network's line.
    pub fn push(&mut self, waiting: Waiting) -> Result<(), Full> {
        let length: usize = self.workers.values().map(|lines| lines.length).sum();
        if length >= MOST {
            return Err(Full);
        }
        self.workers.entry(waiting.worker).or_default().push(waiting)
    }

    /// Takes the check whose turn it is.
    pub fn pop(&mut self) -> Option<Waiting> {
        let behind = |(id, _): &(&WorkerId, &Lines)| self.last.is_none_or(|last| **id > last);
        let next = self.workers.iter().find(behind).or_else(|| self.workers.iter().next());
        let id = *next?.0;
        self.last = Some(id);
        let lines = self.workers.get_mut(&id)?;
        let waiting = lines.pop();
        if lines.length == 0 {
            self.workers.remove(&id);
        }
        waiting
    }

    /// Forgets the check of one session.
    pub fn forget(&mut self, worker: WorkerId, session: SessionId) {
        if let Some(lines) = self.workers.get_mut(&worker) {
            lines.forget(session);
            if lines.length == 0 {
                self.workers.remove(&worker);
            }
        }
    }

    /// Forgets everything a worker has asked.
    pub fn forget_worker(&mut self, worker: WorkerId) {
        self.workers.remove(&worker);
    }
}

/// What one worker has asked.
#[derive(Default)]
struct Lines {
    /// Networks with a check waiting, the next one to be served first. Each is in [`Lines::checks`] too.
    turns: VecDeque<IpAddr>,
    checks: HashMap<IpAddr, VecDeque<Waiting>>,
    length: usize,
}

impl Lines {
    fn push(&mut self, waiting: Waiting) -> Result<(), Full> {
        let network = network::network(waiting.check.source);
        let ahead = self.checks.get(&network).map_or(0, VecDeque::len);
        if self.length >= MOST_OF_A_WORKER || ahead >= MOST_OF_A_NETWORK {
            return Err(Full);
        }
        if ahead == 0 {
            self.turns.push_back(network);
        }
        self.checks.entry(network).or_default().push_back(waiting);
        self.length += 1;
        Ok(())
    }

    fn pop(&mut self) -> Option<Waiting> {
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

    fn forget(&mut self, session: SessionId) {
        for line in self.checks.values_mut() {
            line.retain(|waiting| waiting.check.session != session);
        }
        self.checks.retain(|_, line| !line.is_empty());
        self.turns.retain(|network| self.checks.contains_key(network));
        self.length = self.checks.values().map(VecDeque::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use child_ipc::types::{Secret, UserName};

    use super::*;

    fn from(source: [u8; 4], session: u32) -> Waiting {
        by(0, source, session)
    }

    fn by(worker: u32, source: [u8; 4], session: u32) -> Waiting {
        let user = UserName::new(b"alice").unwrap();
        let (password, source) = (Secret::new(b"x".to_vec()), source.into());
        let (session, host, possession) = (SessionId(session), None, None);
        let check = Check { session, user, password, source, host, secured: false, possession };
        Waiting { worker: WorkerId(worker), check, shown: Shown::Nothing }
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
        for session in 0..MOST_OF_A_NETWORK {
            queue.push(from([10, 0, 0, 1], session as u32)).unwrap();
        }
        assert_eq!(queue.push(from([10, 0, 0, 200], 9999)), Err(Full));
        let mut taken = MOST_OF_A_NETWORK;
        for (worker, network) in (0..4).flat_map(|worker| (1..=255).map(move |network| (worker, network))) {
            taken += usize::from(queue.push(by(worker, [10, 0, network, 1], u32::from(network))).is_ok());
        }
        assert_eq!((taken, order(&mut queue).len()), (MOST, MOST));
    }

    #[test]
    fn a_worker_that_invents_networks_fills_half_of_the_room_and_gets_every_other_turn() {
        let mut queue = Queue::default();
        let accepted = (0..MOST).filter(|&n| queue.push(by(7, [10, (n >> 8) as u8, n as u8, 1], n as u32)).is_ok());
        assert_eq!(accepted.count(), MOST_OF_A_WORKER);
        queue.push(by(3, [192, 0, 2, 1], 9001)).unwrap();
        queue.push(by(3, [192, 0, 2, 1], 9002)).unwrap();
        assert_eq!(order(&mut queue)[..4], [9001, 0, 9002, 1]);
    }

    #[test]
    fn what_is_forgotten_is_not_served_and_makes_room() {
        let mut queue = Queue::default();
        for session in 0..6 {
            queue.push(by(session % 2, [10, 0, session as u8 / 3, 1], session)).unwrap();
        }
        queue.forget(WorkerId(0), SessionId(2));
        queue.forget(WorkerId(1), SessionId(4));
        queue.forget_worker(WorkerId(1));
        assert_eq!(order(&mut queue), [0, 4]);
        assert!(queue.workers.is_empty());
    }
}
