//! The pool of passive sockets: bound and listening, made by the monitor, used again and again.
//!
//! A session holds one from its EPSV or PASV until its client has connected. Before a port is told to anybody its
//! backlog is emptied: whoever waits there was not told of it (RFC 2577). The one released longest ago comes first.
//! Idle ones are closed after [`IDLE_MS`], so that a small range serves all workers.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use child_ipc::{
    MAX_FDS,
    types::{ListenerId, Port},
};
use rustix::{
    io::Errno,
    net::{SocketFlags, acceptfrom_with, getsockname},
};

/// An idle socket is given back after so many milliseconds.
const IDLE_MS: u64 = 5000;
/// Strangers dropped from one backlog before the socket itself is given up.
const MOST_STRANGERS: usize = 512;
/// Sockets asked for beyond those that are waited for.
const MOST_AHEAD: usize = 8;

/// A passive socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    port: Port,
    listener: ListenerId,
}

/// What accepting on a passive socket brought.
#[derive(Debug)]
pub enum Accepted {
    /// The client's data connection, non-blocking.
    Client(OwnedFd),
    /// Nobody is there yet.
    Nobody,
    /// It failed: no descriptors, no memory.
    Failed(Errno),
}

impl Socket {
    fn new(fd: OwnedFd, listener: ListenerId) -> Option<Self> {
        let address = SocketAddr::try_from(getsockname(&fd).ok()?).ok()?;
        Some(Socket { fd, port: Port::new(address.port())?, listener })
    }

    /// Its number.
    pub fn port(&self) -> Port {
        self.port
    }

    /// Takes the connection of the client at `peer`, or of its `proxy`; others are dropped and cost it nothing but time
    /// (RFC 2577).
    ///
    /// Also tells how many were dropped.
    pub fn accept(&self, peer: IpAddr, proxy: Option<IpAddr>) -> (Accepted, usize) {
        for strangers in 0..MOST_STRANGERS {
            match acceptfrom_with(&self.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((fd, from)) => {
                    let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                    let from = from.map(|from| from.ip().to_canonical());
                    if from.is_some_and(|from| from == peer || Some(from) == proxy) {
                        return (Accepted::Client(fd), strangers);
                    }
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return (Accepted::Nobody, strangers),
                Err(errno) => return (Accepted::Failed(errno), strangers),
            }
        }
        (Accepted::Failed(Errno::CONNABORTED), MOST_STRANGERS)
    }

    /// Drops whoever waits in the backlog; false when there is no end to them.
    pub fn drain(&self) -> bool {
        for _ in 0..MOST_STRANGERS {
            match acceptfrom_with(&self.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(_) | Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The sockets for clients of one listener.
#[derive(Debug, Default)]
struct Shelf {
    /// With the time of their release, oldest first.
    free: VecDeque<(Socket, u64)>,
    in_use: usize,
    /// Sessions that wait for one.
    waiting: VecDeque<usize>,
    asked: bool,
}

/// All passive sockets of this worker.
#[derive(Debug, Default)]
pub struct Pool {
    shelves: HashMap<ListenerId, Shelf>,
}

impl Pool {
    /// A socket with an empty backlog, if one is free.
    pub fn take(&mut self, listener: ListenerId) -> Option<Socket> {
        self.shelves.entry(listener).or_default().take()
    }

    /// Takes a socket back. It must not be watched any more.
    pub fn release(&mut self, socket: Socket, now: u64) {
        let shelf = self.shelves.entry(socket.listener).or_default();
        shelf.in_use = shelf.in_use.saturating_sub(1);
        shelf.free.push_back((socket, now));
    }

    /// Lets a session wait; how many to ask the monitor for, unless it is asked already.
    pub fn wait(&mut self, listener: ListenerId, session: usize) -> Option<u8> {
        let shelf = self.shelves.entry(listener).or_default();
        shelf.waiting.push_back(session);
        shelf.ask()
    }

    /// Lets a session wait no longer: it has ended.
    pub fn forget(&mut self, listener: ListenerId, session: usize) {
        if let Some(shelf) = self.shelves.get_mut(&listener) {
            shelf.waiting.retain(|waiting| *waiting != session);
        }
    }

    /// The monitor's answer: who gets what. Sessions that get nothing are to be told 425.
    pub fn arrived(&mut self, listener: ListenerId, fds: Vec<OwnedFd>, now: u64) -> Arrived {
        let none_left = fds.is_empty();
        let shelf = self.shelves.entry(listener).or_default();
        shelf.asked = false;
        shelf.free.extend(fds.into_iter().filter_map(|fd| Socket::new(fd, listener)).map(|socket| (socket, now)));
        let mut served = Vec::new();
        while !shelf.waiting.is_empty() {
            let socket = shelf.take();
            if socket.is_none() && !none_left {
                break;
            }
            served.extend(shelf.waiting.pop_front().map(|session| (session, socket)));
        }
        let again = if shelf.waiting.is_empty() { None } else { shelf.ask() };
        Arrived { served, again }
    }

    /// Gives idle sockets back, and tells when the next one is due.
    pub fn expire(&mut self, now: u64) -> Option<u64> {
        let mut next = None;
        for shelf in self.shelves.values_mut() {
            while shelf.free.front().is_some_and(|(_, since)| since + IDLE_MS <= now) {
                shelf.free.pop_front();
            }
            let due = shelf.free.front().map(|(_, since)| since + IDLE_MS);
            next = [next, due].into_iter().flatten().min();
        }
        // A listener that a reload has closed is not asked for again.
        self.shelves.retain(|_, shelf| !shelf.is_bare());
        next
    }

    /// When the next idle socket is due.
    pub fn due(now: u64) -> u64 {
        now + IDLE_MS
    }
}

impl Shelf {
    /// Whether there is nothing to remember.
    fn is_bare(&self) -> bool {
        self.free.is_empty() && self.waiting.is_empty() && self.in_use == 0 && !self.asked
    }

    fn take(&mut self) -> Option<Socket> {
        while let Some((socket, _)) = self.free.pop_front() {
            if socket.drain() {
                self.in_use += 1;
                return Some(socket);
            }
        }
        None
    }

    fn ask(&mut self) -> Option<u8> {
        if std::mem::replace(&mut self.asked, true) {
            return None;
        }
        let wanted = self.waiting.len() + (self.in_use / 4).min(MOST_AHEAD);
        u8::try_from(wanted.clamp(1, MAX_FDS)).ok()
    }
}

/// Who gets what, after the monitor has answered.
#[derive(Debug)]
pub struct Arrived {
    /// Sessions and their sockets.
    pub served: Vec<(usize, Option<Socket>)>,
    /// So many are to be asked for again.
    pub again: Option<u8>,
}
