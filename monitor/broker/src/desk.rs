//! Which worker's link is served by which thread: a queue of links, and a way to end each.
//!
//! The main thread adds and drops links as the monitor says; a slot's thread takes one, serves it to its end and takes
//! the next. Links are bounded by the number of slots: a monitor that adds more is told no.
//! Not here: what is done on a link (serve.rs).

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use child_ipc::{Channel, link::worker_broker::BrokerEnd, types::WorkerId};
use rustix::net::{Shutdown, shutdown};

/// How long a stop waits for what is being done.
const GRACE: Duration = Duration::from_secs(2);

/// The links of one broker.
#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Link>,
    serving: Vec<Serving>,
    slots: usize,
    taken: u64,
    closed: bool,
}

#[derive(Debug)]
struct Link {
    worker: WorkerId,
    end: BrokerEnd,
    /// The same socket, to shut it down while a thread waits at `end`.
    socket: OwnedFd,
}

#[derive(Debug)]
struct Serving {
    ticket: u64,
    worker: WorkerId,
    socket: OwnedFd,
}

/// A link for one thread to serve, until it gives it back to [`Desk::done`].
#[derive(Debug)]
pub(crate) struct Taken {
    /// Whose it is.
    pub(crate) worker: WorkerId,
    /// The link.
    pub(crate) end: BrokerEnd,
    ticket: u64,
}

impl Desk {
    /// A desk without links, for `slots` threads.
    pub(crate) fn new(slots: usize) -> Self {
        let state = State { waiting: VecDeque::new(), serving: Vec::new(), slots, taken: 0, closed: false };
        Desk { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a worker's link for the next free thread.
    ///
    /// One is free at once, unless the thread of a dropped link is still busy; so as many may wait as there are slots.
    pub(crate) fn add(&self, worker: WorkerId, socket: OwnedFd) -> io::Result<()> {
        let end = Channel::from_fd(socket)?;
        let socket = rustix::io::fcntl_dupfd_cloexec(&end, 3)?;
        let mut state = self.state();
        if state.waiting.len() >= state.slots {
            return Err(io::Error::other("every slot is taken"));
        }
        state.waiting.push_back(Link { worker, end, socket });
        self.changed.notify_all();
        Ok(())
    }

    /// Ends every link of this worker from our side; a thread that waits there wakes up, one that works finishes first.
    pub(crate) fn drop_worker(&self, worker: WorkerId) {
        let mut state = self.state();
        state.waiting.retain(|link| link.worker != worker);
        for serving in state.serving.iter().filter(|s| s.worker == worker) {
            let _ = shutdown(&serving.socket, Shutdown::Both);
        }
    }

    /// Waits for a link to serve; `None` when the desk is closed.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(Link { worker, end, socket }) = state.waiting.pop_front() {
                state.taken += 1;
                let ticket = state.taken;
                state.serving.push(Serving { ticket, worker, socket });
                return Some(Taken { worker, end, ticket });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Closes a link whose service has ended.
    pub(crate) fn done(&self, taken: Taken) {
        let mut state = self.state();
        state.serving.retain(|serving| serving.ticket != taken.ticket);
        self.changed.notify_all();
    }

    /// Takes no more questions, and returns when those that were asked are answered, or after [`GRACE`]: a worker that does
    /// not read its answers, or a disk that does not answer us, holds up nobody's stop.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
        for serving in &state.serving {
            let _ = shutdown(&serving.socket, Shutdown::Read);
        }
        let busy = |state: &mut State| !state.serving.is_empty();
        drop(self.changed.wait_timeout_while(state, GRACE, busy));
    }
}
