//! The helper threads: whatever may have to wait for a disk is done by one of them, so that the loop never waits.
//!
//! They exist before the seal and are under its filter. The loop gives an errand, with the descriptors it needs, and is
//! told by an eventfd(2) when it is done; meanwhile the session has only a ticket. A session that gives up says so on its
//! ticket, and the helper does no more than it is doing: what is acknowledged afterwards is not written over. A session that
//! ends forgets it: what comes back for nobody is closed here as well, for close(2) can wait like any other call.
//! A helper that hangs in a dead file system holds its one errand. Others for the same device wait then, until
//! `stall_timeout_secs` ends their transfers, and everything else goes on: lanes.rs keeps helpers for it.
//! Reads from: the loop. Not here: which turn may wait (transfer/mod.rs).

mod lanes;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Barrier, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use child_ipc::{link::settings::FtpSettings, types::BrokerId};
use rustix::event::{EventfdFlags, eventfd};

use self::lanes::Lanes;
pub use self::lanes::{Lane, On};
use crate::{
    ftp::state::Worked,
    transfer::{Step, Tools, Transfer, job::Job},
};

/// How many threads there are: so many calls may wait for disks at once.
pub const THREADS: usize = 8;
/// Stack of a thread in bytes: its buffers are on the heap.
const STACK: usize = 128 << 10;
/// Most errands that wait. Every session has at most one, and its end leaves one more behind.
const MOST_WAITING: usize = 16_384;
/// With so many forgotten ones of a broker, which hold two descriptors each, no new ones are taken for it.
const MOST_FORGOTTEN: usize = 256;

/// What a helper is to do.
#[derive(Debug)]
pub enum Errand {
    /// One turn of a transfer.
    Turn(Box<Transfer>, Arc<OwnedFd>),
    /// One turn of a sum or a copy.
    Work(Box<Job>),
    /// To close what nobody needs any more.
    Close(Files),
}

impl Errand {
    fn lane(&self) -> Lane {
        match self {
            Errand::Turn(transfer, _) => transfer.lane(),
            Errand::Work(job) => job.lane(),
            Errand::Close(files) => files.lane,
        }
    }
}

/// Files, and where they wait to be closed.
#[derive(Debug)]
pub struct Files {
    /// Where.
    pub lane: Lane,
    /// Which.
    pub files: Vec<OwnedFd>,
}

/// What has become of it.
#[derive(Debug)]
pub enum Back {
    /// The transfer, and how far the turn came.
    Turn(Box<Transfer>, Step),
    /// The sum or copy; its result when it has ended.
    Work(Box<Job>, Option<Worked>),
}

impl Back {
    /// The files, for [`Errand::Close`].
    pub fn into_files(self) -> Files {
        match self {
            Back::Turn(transfer, _) => transfer.into_files(),
            Back::Work(job, _) => job.into_files(),
        }
    }
}

/// An errand, as the one who gave it knows it.
#[derive(Debug)]
pub struct Ticket {
    /// No other has it.
    number: u64,
    broker: BrokerId,
    given_up: Arc<AtomicBool>,
}

impl Ticket {
    /// Has the helper do no more of it than it is doing at this moment.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Whether that has been said.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Whether this is the errand that is done.
    pub fn is(&self, done: Number) -> bool {
        self.number == done.0
    }
}

/// Names an errand that is done.
#[derive(Debug, Clone, Copy)]
pub struct Number(u64);

/// An errand that is done.
#[derive(Debug)]
pub struct Done {
    /// The session's place when it was given.
    pub session: usize,
    /// Its name.
    pub number: Number,
    /// What has become of it.
    pub back: Back,
}

#[derive(Debug)]
struct Given {
    session: usize,
    number: Number,
    given_up: Arc<AtomicBool>,
    errand: Errand,
}

/// What loop and threads share.
#[derive(Debug)]
struct Desk {
    lanes: Mutex<Lanes<Given>>,
    changed: Condvar,
    done: Mutex<Vec<Done>>,
    /// Counts up when there is something in `done`. Nobody takes the count down: it is watched for its edges.
    bell: OwnedFd,
}

/// The threads, as the loop sees them. Without any, every errand is refused.
#[derive(Debug)]
pub struct Helpers {
    desk: Arc<Desk>,
    /// By broker: errands whose session has gone, or gave up, and that are not back. Each holds descriptors.
    forgotten: BTreeMap<BrokerId, usize>,
}

impl Helpers {
    /// Starts the threads and waits until each needs nothing more than the filter of the sandbox leaves it.
    pub fn start(settings: &FtpSettings) -> io::Result<Self> {
        let desk = Arc::new(Desk {
            lanes: Mutex::new(Lanes::new()),
            changed: Condvar::new(),
            done: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let started = Arc::new(Barrier::new(THREADS + 1));
        for _ in 0..THREADS {
            let (desk, started, tools) = (Arc::clone(&desk), Arc::clone(&started), Tools::new(settings));
            thread::Builder::new().name("helper".to_owned()).stack_size(STACK).spawn(move || {
                started.wait();
                serve(&desk, tools);
            })?;
        }
        started.wait();
        Ok(Helpers { desk, forgotten: BTreeMap::new() })
    }

    /// Readable, edge by edge, when errands are done.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.desk.bell.as_fd()
    }

    /// Gives an errand for this session; it comes back at once when too many wait.
    pub fn give(&mut self, session: usize, errand: Errand) -> Result<Ticket, Errand> {
        let given_up = Arc::<AtomicBool>::default();
        let mut lanes = lock(&self.desk.lanes);
        let forgotten = self.forgotten.get(&errand.lane().broker).copied().unwrap_or(0);
        if lanes.waiting() >= MOST_WAITING || forgotten >= MOST_FORGOTTEN && !matches!(errand, Errand::Close(_)) {
            return Err(errand);
        }
        let broker = errand.lane().broker;
        let number = lanes.push(errand.lane(), |number| Given {
            session,
            number: Number(number),
            given_up: Arc::clone(&given_up),
            errand,
        });
        drop(lanes);
        self.desk.changed.notify_one();
        Ok(Ticket { number, broker, given_up })
    }

    /// Nobody wants to hear of this errand any more.
    pub fn forget(&mut self, ticket: &Ticket) {
        ticket.give_up();
        *self.forgotten.entry(ticket.broker).or_default() += 1;
    }

    /// One of these is back.
    pub fn came_back_for_nobody(&mut self, back: Back) {
        let files = back.into_files();
        if let Entry::Occupied(mut count) = self.forgotten.entry(files.lane.broker) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.close(files);
    }

    /// Has files closed, of which nobody wants to hear any more.
    pub fn close(&mut self, files: Files) {
        // Too many wait: then the loop has to wait for this one.
        drop(self.give(usize::MAX, Errand::Close(files)));
    }

    /// Takes what is done.
    pub fn done(&self) -> Vec<Done> {
        std::mem::take(&mut *lock(&self.desk.done))
    }
}

/// A thread's life.
fn serve(desk: &Desk, mut tools: Tools) {
    let mut ended = None;
    loop {
        let (lane, Given { session, number, given_up, errand }) = next(desk, ended);
        ended = Some(lane);
        let back = match errand {
            Errand::Turn(mut transfer, data) => {
                let step = transfer.step_of_helper(data.as_fd(), &mut tools, &given_up);
                // The loop is to have the only one when it hears of it.
                drop(data);
                Back::Turn(transfer, step)
            }
            Errand::Work(mut job) => {
                let result = if given_up.load(Ordering::Relaxed) { None } else { job.step(&mut tools) };
                Back::Work(job, result)
            }
            Errand::Close(files) => {
                drop(files);
                continue;
            }
        };
        let mut done = lock(&desk.done);
        let rings = done.is_empty();
        done.push(Done { session, number, back });
        drop(done);
        if rings {
            // Fails only when the count is near 2^64.
            let _ = rustix::io::write(&desk.bell, &1_u64.to_ne_bytes());
        }
    }
}

/// Waits for the next errand that may begin, when one of the lane `ended` has ended.
fn next(desk: &Desk, ended: Option<Lane>) -> (Lane, Given) {
    let mut lanes = lock(&desk.lanes);
    if let Some(lane) = ended {
        lanes.end(lane);
    }
    loop {
        if let Some(next) = lanes.begin() {
            // The end of one errand may have let two begin: its device has room for one, its broker for another.
            let others = lanes.waiting() > 0 && lanes.under_way() < THREADS;
            drop(lanes);
            if others {
                desk.changed.notify_one();
            }
            return next;
        }
        lanes = desk.changed.wait(lanes).unwrap_or_else(PoisonError::into_inner);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
