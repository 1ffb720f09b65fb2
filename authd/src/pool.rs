//! The check threads: argon2id and nothing else. They exist before the seal and are under its filter.
//!
//! A thread holds one job at a time and never more than one arena. The thread that ended last is the next one to
//! work, so that a quiet server keeps one arena warm and not one per thread. Lower priority than the rest of the
//! machine: transfers go on during a flood of passwords.
//! Not here: which check is next (queue.rs), what a result means (checks.rs).

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Barrier,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use child_ipc::types::Secret;
use rustix::event::{EventfdFlags, eventfd};
use stored_hash::Stored;

use crate::verify::{Arena, OutOfMemory};

/// Most threads.
pub const MOST: u32 = 64;
/// nice(1) value of the threads.
const NICE: i32 = 5;
/// Stack of a thread in bytes; argon2 keeps a dozen blocks of 1 KiB there.
const STACK: usize = 256 << 10;
/// A thread without work gives its arena back after this long.
const IDLE: Duration = Duration::from_secs(5);

struct Job {
    stored: Arc<Stored>,
    password: Secret,
}

/// A thread's answer.
pub struct Done {
    /// Which thread.
    pub thread: usize,
    /// Whether the password has the hash.
    pub matched: Result<bool, OutOfMemory>,
}

/// The threads.
pub struct Pool {
    jobs: Vec<SyncSender<Job>>,
    /// Threads without a job; the last one worked last.
    idle: Vec<usize>,
    done: Receiver<Done>,
    /// Counts up with every [`Done`]. Non-blocking.
    bell: Arc<OwnedFd>,
}

impl Pool {
    /// Starts `count` threads and waits until each needs nothing more than the filter of the sandbox leaves it.
    pub fn start(count: usize) -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let started = Arc::new(Barrier::new(count + 1));
        // Never full: a thread has at most one result under way.
        let (results, done) = sync_channel(count);
        let mut jobs = Vec::with_capacity(count);
        for thread in 0..count {
            let (sender, receiver) = sync_channel(1);
            let (results, bell, started) = (results.clone(), Arc::clone(&bell), Arc::clone(&started));
            thread::Builder::new().name(format!("check{thread}")).stack_size(STACK).spawn(move || {
                // Worse priority is granted to everybody; without it the thread is only less polite.
                let _ = rustix::process::setpriority_process(None, NICE);
                started.wait();
                work(thread, &receiver, &results, &bell);
            })?;
            jobs.push(sender);
        }
        started.wait();
        Ok(Pool { jobs, idle: (0..count).rev().collect(), done, bell })
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.jobs.len()
    }

    /// Whether no thread is free.
    pub fn is_busy(&self) -> bool {
        self.idle.is_empty()
    }

    /// Gives a job to a free thread, and says to which; `None` when there is none.
    pub fn check(&mut self, stored: Arc<Stored>, password: Secret) -> Option<usize> {
        let thread = self.idle.pop()?;
        self.jobs.get(thread)?.try_send(Job { stored, password }).ok()?;
        Some(thread)
    }

    /// Takes the next result, and its thread is free again.
    pub fn finished(&mut self) -> Option<Done> {
        let done = self.done.try_recv().ok()?;
        self.idle.push(done.thread);
        Some(done)
    }

    /// Silences the bell; results that come later ring it again. Call before [`Pool::finished`].
    pub fn silence(&self) {
        // Fails when it was silent already.
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
    }

    /// Readable when there are results.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

fn work(thread: usize, jobs: &Receiver<Job>, results: &SyncSender<Done>, bell: &OwnedFd) {
    let mut arena = Arena::default();
    loop {
        let job = if arena.is_empty() { jobs.recv().map_err(RecvTimeoutError::from) } else { jobs.recv_timeout(IDLE) };
        match job {
            Ok(Job { stored, password }) => {
                let matched = arena.matches(&stored, password.expose());
                drop(password);
                if results.send(Done { thread, matched }).is_err() {
                    return;
                }
                // Fails only when the count is near 2^64.
                let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
                // After the answer: nobody waits for it.
                arena.wipe();
            }
            Err(RecvTimeoutError::Timeout) => arena.free(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
