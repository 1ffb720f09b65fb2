//! Whose turn it is: what waits for the helpers, in lanes. A lane is what one account's broker calls one device.
//!
//! Of all errands that may begin, the oldest does. One may not while [`OF_DEVICE`] of its device or [`OF_BROKER`] of its broker
//! are under way: a disk that hangs, or an account all of whose disks do, leaves helpers to the others. Which device it is, is
//! a broker's word (hostile). One that lies has its own limit all the same: it can slow another's device down, as if it had
//! files there, and not stop it, because [`OF_BROKER`] is less than [`OF_DEVICE`].
//!
//! A lane is there while an errand waits in it, and looking for the next errand takes a look at each lane. Not here: threads.

use std::collections::{BTreeMap, VecDeque};

use child_ipc::types::BrokerId;

/// Most errands of one device under way.
const OF_DEVICE: usize = 3;
/// Most errands for one broker's files under way.
const OF_BROKER: usize = 2;
/// Most copies between the same two devices under way. They count for neither device: else a copy would have to wait until
/// both have room at once, which may never come.
const OF_PAIR: usize = 1;

/// What an errand's files are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// One device (`st_dev`, stat(2)).
    One(u64),
    /// Two, the lesser number first.
    Two(u64, u64),
}

impl On {
    /// The devices of two files.
    pub fn both(one: u64, other: u64) -> Self {
        if one == other { On::One(one) } else { On::Two(one.min(other), one.max(other)) }
    }

    fn most(self) -> usize {
        match self {
            On::One(_) => OF_DEVICE,
            On::Two(..) => OF_PAIR,
        }
    }
}

/// Where an errand waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// The broker that opened its files: its name, for a place among the links may be another's when an errand comes back.
    pub broker: BrokerId,
    /// What that says they are on.
    pub on: On,
}

/// What waits, and the lanes of what is under way.
#[derive(Debug)]
pub struct Lanes<T> {
    waiting: BTreeMap<Lane, VecDeque<(u64, T)>>,
    count: usize,
    last: u64,
    under_way: Vec<Lane>,
}

impl<T> Lanes<T> {
    /// Nothing waits.
    pub fn new() -> Self {
        Lanes { waiting: BTreeMap::new(), count: 0, last: 0, under_way: Vec::new() }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.count
    }

    /// How many are under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Puts one last; `make` is told its number, which no other has.
    pub fn push(&mut self, lane: Lane, make: impl FnOnce(u64) -> T) -> u64 {
        self.last += 1;
        self.waiting.entry(lane).or_default().push_back((self.last, make(self.last)));
        self.count += 1;
        self.last
    }

    /// Takes the oldest that may begin. It is under way until [`Lanes::end`].
    pub fn begin(&mut self) -> Option<(Lane, T)> {
        let may_begin = self.waiting.iter().filter(|(lane, _)| self.has_room(**lane));
        let (lane, _) = may_begin.min_by_key(|(_, queue)| queue.front().map(|(number, _)| *number))?;
        let lane = *lane;
        let queue = self.waiting.get_mut(&lane)?;
        let (_, first) = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&lane);
        }
        self.count -= 1;
        self.under_way.push(lane);
        Some((lane, first))
    }

    /// One of this lane is no longer under way.
    pub fn end(&mut self, lane: Lane) {
        if let Some(place) = self.under_way.iter().position(|other| *other == lane) {
            self.under_way.swap_remove(place);
        }
    }

    fn has_room(&self, lane: Lane) -> bool {
        let (mut on, mut broker) = (0, 0);
        for other in &self.under_way {
            on += usize::from(other.on == lane.on);
            broker += usize::from(other.broker == lane.broker);
        }
        on < lane.on.most() && broker < OF_BROKER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(broker: u32, device: u64) -> Lane {
        Lane { broker: BrokerId(broker), on: On::One(device) }
    }

    /// What begins when these are pushed in this order and none ends.
    fn begun(lanes: &mut Lanes<u64>, pushed: &[Lane]) -> Vec<Lane> {
        for lane in pushed {
            lanes.push(*lane, |number| number);
        }
        std::iter::from_fn(|| lanes.begin()).map(|(lane, _)| lane).collect()
    }

    #[test]
    fn the_oldest_begins_first_whatever_its_lane() {
        let mut lanes = Lanes::new();
        let order = [lane(3, 9), lane(1, 5), lane(2, 9), lane(1, 4)];
        assert_eq!(begun(&mut lanes, &order), order);
        assert_eq!((lanes.waiting(), lanes.under_way(), lanes.waiting.len()), (0, 4, 0));
    }

    #[test]
    fn neither_a_device_nor_an_account_takes_all() {
        let mut lanes = Lanes::new();
        let hung: Vec<Lane> = (0..20).map(|broker| lane(broker, 7)).collect();
        assert_eq!(begun(&mut lanes, &hung), hung[..OF_DEVICE]);
        let everywhere: Vec<Lane> = (0..20).map(|device| lane(50, 100 + device)).collect();
        assert_eq!(begun(&mut lanes, &everywhere), everywhere[..OF_BROKER]);
        assert_eq!(begun(&mut lanes, &[lane(60, 8)]), [lane(60, 8)]);
        assert_eq!(lanes.waiting(), 40 - OF_DEVICE - OF_BROKER);
        lanes.end(hung[1]);
        assert_eq!(begun(&mut lanes, &[]), [hung[OF_DEVICE]]);
    }

    #[test]
    fn a_broker_that_lies_about_the_device_does_not_stop_others_there() {
        let mut lanes = Lanes::new();
        begun(&mut lanes, &[lane(1, 7); 20]);
        assert_eq!(begun(&mut lanes, &[lane(2, 7)]), [lane(2, 7)]);
    }

    #[test]
    fn a_copy_between_two_devices_waits_for_its_like_alone() {
        let copy = |broker, on| Lane { broker: BrokerId(broker), on };
        let mut lanes = Lanes::new();
        begun(&mut lanes, &(0..20).map(|broker| lane(broker, 7)).collect::<Vec<_>>());
        let both = [copy(30, On::both(7, 8)), copy(31, On::both(8, 7)), copy(32, On::both(8, 8))];
        assert_eq!(begun(&mut lanes, &both), [both[0], both[2]]);
        assert_eq!(both[2].on, On::One(8));
        lanes.end(both[0]);
        assert_eq!(begun(&mut lanes, &[]), [both[1]]);
    }
}
