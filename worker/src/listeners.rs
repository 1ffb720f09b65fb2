//! The monitor's listening sockets, shared by all workers: accepting clients.
//!
//! They are watched level-triggered and exclusively (EPOLLEXCLUSIVE): a connection wakes one worker, and one that is
//! busy leaves it to another. mio knows no such thing, so it is set on mio's own epoll descriptor; the events come out
//! of mio's poll all the same. The kernel wakes the worker that has watched longest, so one that took clients watches
//! anew: clients that come one by one go round the workers instead of to the same one for ever. In a burst the first to be
//! awake would take most of them before another is: one that is [`AHEAD`] of the others leaves them some moments.

use std::{io, net::SocketAddr, os::fd::OwnedFd};

use child_ipc::{link::monitor_worker::Listener, types::ListenerId};
use mio::Registry;
use rustix::{
    event::epoll::{self, EventData, EventFlags},
    io::Errno,
    net::{SocketFlags, acceptfrom_with},
};
use slab::Slab;

use crate::hub::Source;

/// Clients accepted on one listener in one turn: few, so that a burst is shared with the other workers.
pub const PER_TURN: usize = 4;
/// Connections that a worker may hold more than the one that holds fewest, before it leaves new ones to the others.
pub const AHEAD: u32 = 8;
/// For so many milliseconds: longer than it takes to wake up, and not long for a client if the others do not come.
const LEFT_MS: u64 = 2;
/// Without descriptors or memory, the listener rests for so many milliseconds.
pub const REST_MS: u64 = 1000;

#[derive(Debug)]
struct Entry {
    listener: Listener,
    fd: OwnedFd,
    rests_until: Option<u64>,
}

/// What accepting brought.
#[derive(Debug)]
pub enum Accepted {
    /// A client, non-blocking, or a proxy on behalf of one.
    Client(OwnedFd, SocketAddr, Listener),
    /// Nobody is there.
    Nobody,
    /// No descriptors, no memory: the listener rests.
    Short(Errno),
}

/// All listening sockets.
#[derive(Debug, Default)]
pub struct Listeners {
    entries: Slab<Entry>,
    /// When the first that rests has rested.
    due: Option<u64>,
}

impl Listeners {
    /// Accepts on this socket from now on. Its options, which clients inherit, are the monitor's to set.
    pub fn add(&mut self, listener: Listener, fd: OwnedFd, registry: &Registry) -> io::Result<()> {
        let entry = self.entries.vacant_entry();
        watch(&fd, entry.key(), registry)?;
        entry.insert(Entry { listener, fd, rests_until: None });
        Ok(())
    }

    /// Accepts there no longer.
    pub fn close(&mut self, id: ListenerId, registry: &Registry) {
        self.entries.retain(|_, entry| {
            let stays = entry.listener.id != id;
            if !stays && entry.rests_until.is_none() {
                // The monitor and the other workers hold the socket too: closing ours does not unwatch it.
                let _ = epoll::delete(registry, &entry.fd);
            }
            stays
        });
    }

    /// Accepts one client.
    pub fn accept(&mut self, place: usize, now: u64, registry: &Registry) -> Accepted {
        let Some(entry) = self.entries.get_mut(place).filter(|entry| entry.rests_until.is_none()) else {
            return Accepted::Nobody;
        };
        loop {
            match acceptfrom_with(&entry.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((fd, Some(peer))) => match SocketAddr::try_from(peer) {
                    Ok(peer) => return Accepted::Client(fd, peer, entry.listener),
                    Err(_) => continue,
                },
                Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    self.rest(place, now + REST_MS, registry);
                    return Accepted::Short(errno);
                }
                Ok((_, None)) | Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => return Accepted::Nobody,
            }
        }
    }

    /// Goes to the end of the line: the kernel wakes whoever has watched longest, which would always be the same worker.
    pub fn queue_up(&self, place: usize, registry: &Registry) {
        if let Some(entry) = self.entries.get(place).filter(|entry| entry.rests_until.is_none()) {
            // Neither fails for a socket that is watched; if it did, this worker would leave its clients to the others.
            let _ = epoll::delete(registry, &entry.fd);
            let _ = watch(&entry.fd, place, registry);
        }
    }

    /// Leaves clients to the other workers, for some moments.
    pub fn leave(&mut self, place: usize, now: u64, registry: &Registry) {
        self.rest(place, now + LEFT_MS, registry);
    }

    fn rest(&mut self, place: usize, until: u64, registry: &Registry) {
        if let Some(entry) = self.entries.get_mut(place).filter(|entry| entry.rests_until.is_none()) {
            let _ = epoll::delete(registry, &entry.fd);
            entry.rests_until = Some(until);
            self.due = Some(self.due.map_or(until, |due| due.min(until)));
        }
    }

    /// When a listener has rested, milliseconds.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// Wakes listeners that have rested.
    pub fn wake(&mut self, now: u64, registry: &Registry) {
        self.due = None;
        for (place, entry) in &mut self.entries {
            match entry.rests_until {
                Some(until) if until <= now => {
                    entry.rests_until = watch(&entry.fd, place, registry).is_err().then_some(now + REST_MS);
                }
                Some(_) | None => {}
            }
            self.due = [self.due, entry.rests_until].into_iter().flatten().min();
        }
    }
}

fn watch(fd: &OwnedFd, place: usize, registry: &Registry) -> io::Result<()> {
    let data = EventData::new_u64(Source::Listener(place).token().0 as u64);
    epoll::add(registry, fd, data, EventFlags::IN | EventFlags::EXCLUSIVE).map_err(io::Error::from)
}
