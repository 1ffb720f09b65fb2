//! From a question to its verdict: certificates, cache, queue, check threads, delays. Knows nothing of sockets.
//!
//! Reads from: workers (hostile), after decoding. Trusts: the user table.
//! Holds: one open check a session; a session is granted only when its password, its certificate or both were right under the
//! table of this very moment; what is cached is answered in the turn it is asked, never behind argon2id.
//! Not here: sending (serve.rs), and in which order grant and verdict leave (serve.rs).

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    net::IpAddr,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use child_ipc::{
    Breach,
    link::{
        log::{Event, Level, LogRecord},
        monitor_authd::Grant,
        worker_authd::{Check, Outcome, Verdict},
    },
    types::{Blob, SessionId, UserName, WorkerId},
};

use crate::{
    cache::{Cache, Digest},
    certificate::{Shown, Used, hex},
    delay::Delays,
    pool::{Done, Pool},
    queue::{Full, Queue, Waiting},
    reason::Reason,
    users::{Came, Proof, Table},
};

/// Most checks a worker has open at once, those whose refusal is held back included. More are answered busy.
const MOST_OPEN: usize = 4096;
/// A full queue is logged once in this time.
const BUSY_LOG: Duration = Duration::from_secs(10);

/// What is to be said, in this order.
pub enum Word {
    /// To the monitor; the accepting verdict follows when this has been sent ([`Desk::granted`]).
    Grant(Grant),
    /// To a worker.
    Verdict(WorkerId, Verdict),
    /// To the log.
    Log(LogRecord),
}

/// Where an open check is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// In the queue.
    Waiting,
    /// In a check thread.
    Running,
    /// Refused; the answer is held back.
    Held,
    /// Right; the grant is on its way.
    Granting,
    /// Begun, but its client has gone: nothing is said any more.
    Forgotten,
}

/// A check in a thread.
struct Running {
    worker: WorkerId,
    session: SessionId,
    user: UserName,
    source: IpAddr,
    came: Came,
    shown: Shown,
    /// As it was when the check began.
    proof: Proof,
    digest: Option<Digest>,
}

/// A refusal that is held back.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: Instant,
    worker: WorkerId,
    session: SessionId,
}

#[derive(Default)]
struct Counts {
    cached: u64,
    checked: u64,
    refused: u64,
    busy: u64,
}

/// Every check of every worker.
pub struct Desk {
    users: Table,
    cache: Cache,
    used: Used,
    queue: Queue,
    delays: Delays,
    pool: Pool,
    /// By thread.
    running: Vec<Option<Running>>,
    open: HashMap<WorkerId, HashMap<SessionId, Phase>>,
    held: BinaryHeap<Reverse<Held>>,
    words: Vec<Word>,
    counts: Counts,
    busy_logged: Option<Instant>,
}

impl Desk {
    /// Begins with what the start of the process has made.
    pub fn new(users: Table, cache: Cache, pool: Pool) -> Self {
        let running = (0..pool.threads()).map(|_| None).collect();
        let (used, queue, delays, open, held) = Default::default();
        let (words, counts, busy_logged) = Default::default();
        Desk { users, cache, used, queue, delays, pool, running, open, held, words, counts, busy_logged }
    }

    /// A worker asks. What can be answered at once is.
    pub fn ask(&mut self, worker: WorkerId, mut check: Check, now: Instant) -> Result<(), Breach> {
        let session = check.session;
        let open = self.open.entry(worker).or_default();
        if open.contains_key(&session) {
            return Err(Breach::OutOfPhase("one check of a session at a time"));
        }
        if open.len() >= MOST_OPEN {
            self.busy(worker, session, now);
            return Ok(());
        }
        let possession = check.possession.take();
        let shown = Shown::judge(possession.as_deref(), |certificate| self.users.is_own(&check.user, certificate))?;
        if self.passes_at_once(&check, shown, now) {
            self.accept(worker, session, check.user, check.source, shown);
        } else if check.password.is_none() {
            // Its password is still to come.
            self.words.push(Word::Verdict(worker, Verdict { session, outcome: Outcome::Rejected }));
        } else {
            match self.queue.push(Waiting { worker, check, shown }) {
                Ok(()) => self.set(worker, session, Phase::Waiting),
                Err(Full) => self.busy(worker, session, now),
            }
        }
        Ok(())
    }

    /// How a login is decided now.
    fn proof(&self, user: &UserName, came: &Came, shown: Shown) -> Proof {
        self.users.proof(user, came, &self.used.look(user, shown))
    }

    fn passes_at_once(&mut self, check: &Check, shown: Shown, now: Instant) -> bool {
        match (self.proof(&check.user, &Came::of(check), shown), &check.password) {
            (Proof::Certificate, _) | (Proof::Any, Some(_)) => true,
            (Proof::Password(stored), Some(password)) if !self.cache.ttl().is_zero() => {
                let digest = self.cache.digest(&check.user, &stored, password.expose());
                let known = self.cache.knows(&digest, now);
                self.counts.cached += u64::from(known);
                known
            }
            (Proof::Any | Proof::Password(_) | Proof::Never(..), _) => false,
        }
    }

    /// The client of a check has gone.
    pub fn forget(&mut self, worker: WorkerId, session: SessionId) {
        match self.open.get(&worker).and_then(|open| open.get(&session)) {
            Some(Phase::Waiting) => {
                self.queue.forget(worker, session);
                self.close(worker, session);
            }
            Some(Phase::Held) => self.close(worker, session),
            Some(Phase::Running | Phase::Granting) => self.set(worker, session, Phase::Forgotten),
            Some(Phase::Forgotten) | None => {}
        }
    }

    /// A worker has gone: nothing it asked is answered any more.
    pub fn forget_worker(&mut self, worker: WorkerId) {
        self.open.remove(&worker);
        self.queue.forget_worker(worker);
    }

    /// The monitor has been sent the grant of a session: now the worker may hear of it.
    pub fn granted(&mut self, worker: WorkerId, session: SessionId) -> Option<Verdict> {
        let phase = self.open.get_mut(&worker)?.remove(&session)?;
        (phase == Phase::Granting).then_some(Verdict { session, outcome: Outcome::Accepted })
    }

    /// Takes over a new user table.
    pub fn set_users(&mut self, users: Table) {
        self.cache.clear();
        self.used.keep(|user| users.has_certificates(user));
        self.users = users;
    }

    /// Sets how long accepted credentials are remembered; a change forgets them all.
    pub fn set_ttl(&mut self, ttl: Duration) {
        if ttl != self.cache.ttl() {
            self.cache.reset(ttl);
        }
    }

    /// Lets free threads begin with what waits.
    pub fn start(&mut self, now: Instant) {
        while !self.pool.is_busy() {
            let Some(Waiting { worker, check, shown }) = self.queue.pop() else { return };
            // Again: another session's check may have found this very credential right, or the table is new.
            if self.passes_at_once(&check, shown, now) {
                self.accept(worker, check.session, check.user, check.source, shown);
            } else {
                self.run(worker, check, shown, now);
            }
        }
    }

    fn run(&mut self, worker: WorkerId, check: Check, shown: Shown, now: Instant) {
        let came = Came::of(&check);
        let Check { session, user, password, source, .. } = check;
        let proof = self.proof(&user, &came, shown);
        let (stored, password, digest) = match (&proof, password) {
            (Proof::Password(stored), Some(password)) => {
                let digest = self.cache.digest(&user, stored, password.expose());
                (stored, password, Some(digest))
            }
            (Proof::Never(stored, _), Some(password)) => (stored, password, None),
            // Those have passed at once, or do not wait.
            (Proof::Any | Proof::Certificate, _) | (_, None) => return self.busy(worker, session, now),
        };
        let thread = self.pool.check(stored.clone(), password);
        match thread.and_then(|thread| self.running.get_mut(thread)) {
            Some(slot) => {
                *slot = Some(Running { worker, session, user, source, came, shown, proof, digest });
                self.counts.checked += 1;
                self.set(worker, session, Phase::Running);
            }
            None => self.busy(worker, session, now),
        }
    }

    /// Takes what the threads have found.
    pub fn finish(&mut self, now: Instant) {
        self.pool.silence();
        while let Some(Done { thread, matched }) = self.pool.finished() {
            let Some(run) = self.running.get_mut(thread).and_then(Option::take) else { continue };
            let right = match (matched, &run.proof) {
                (Err(failed), _) => {
                    let text = format!("out of memory: a password check needs {} KiB", failed.wanted);
                    self.log(Level::Error, Event::Fault, Some(run.session), &text);
                    self.busy(run.worker, run.session, now);
                    continue;
                }
                // The table may have changed meanwhile: the proof must still be the same.
                (Ok(true), Proof::Password(_)) => self.proof(&run.user, &run.came, run.shown) == run.proof,
                (Ok(_), _) => false,
            };
            let awaited = self.phase(run.worker, run.session) == Some(Phase::Running);
            self.close(run.worker, run.session);
            if right {
                if let Some(digest) = run.digest {
                    self.cache.remember(digest, now);
                }
                if awaited {
                    self.accept(run.worker, run.session, run.user, run.source, run.shown);
                }
            } else {
                self.refuse(run, awaited, now);
            }
        }
    }

    fn accept(&mut self, worker: WorkerId, session: SessionId, user: UserName, source: IpAddr, shown: Shown) {
        self.delays.succeeded(source, &user);
        self.set(worker, session, Phase::Granting);
        // Proved are certificates of the account's own alone: this one was needed.
        if let Shown::Proved(proved) = shown {
            self.used.remember(&user, proved);
            let (source, certificate) = (source.to_canonical(), hex(&proved.fingerprint));
            let text = format!("source={source} worker={worker} user=\"{user}\" certificate={certificate}");
            self.log(Level::Info, Event::Login, Some(session), &text);
        }
        self.words.push(Word::Grant(Grant { worker, session, user }));
    }

    /// Notes a failure, and answers it now or later if somebody waits for the answer.
    fn refuse(&mut self, run: Running, awaited: bool, now: Instant) {
        let Running { worker, session, user, source, shown, proof, .. } = run;
        let why = if let Proof::Never(_, why) = proof { why.name() } else { Reason::WrongPassword.name() };
        let mut text = format!("source={} why={why} worker={worker} user=\"{user}\"", source.to_canonical());
        if let Some(certificate) = shown.fingerprint() {
            text = format!("{text} certificate={}", hex(certificate));
        }
        self.log(Level::Info, Event::LoginFailed, Some(session), &text);
        self.counts.refused += 1;
        let due = now + self.delays.failed(source, &user, now);
        if awaited && due > now {
            self.set(worker, session, Phase::Held);
            self.held.push(Reverse(Held { due, worker, session }));
        } else if awaited {
            self.words.push(Word::Verdict(worker, Verdict { session, outcome: Outcome::Rejected }));
        }
    }

    /// Answers whose time has come.
    pub fn release(&mut self, now: Instant) {
        while let Some(Reverse(held)) = self.held.peek() {
            if held.due > now {
                return;
            }
            let Some(Reverse(Held { worker, session, .. })) = self.held.pop() else { return };
            if self.phase(worker, session) == Some(Phase::Held) {
                self.close(worker, session);
                self.words.push(Word::Verdict(worker, Verdict { session, outcome: Outcome::Rejected }));
            }
        }
    }

    /// When [`Desk::release`] has something to do next.
    pub fn due(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse(held)| held.due)
    }

    /// Readable when [`Desk::finish`] has something to do.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.pool.bell()
    }

    /// What is to be said now.
    pub fn words(&mut self) -> Vec<Word> {
        std::mem::take(&mut self.words)
    }

    /// Numbers since start, for the log.
    pub fn summary(&self) -> String {
        let Counts { cached, checked, refused, busy } = self.counts;
        let evicted = self.cache.evicted();
        format!("cached={cached} checked={checked} refused={refused} busy={busy} evicted={evicted}")
    }

    fn busy(&mut self, worker: WorkerId, session: SessionId, now: Instant) {
        self.counts.busy += 1;
        if self.phase(worker, session) != Some(Phase::Forgotten) {
            self.words.push(Word::Verdict(worker, Verdict { session, outcome: Outcome::Busy }));
        }
        self.close(worker, session);
        if self.busy_logged.is_none_or(|last| now.saturating_duration_since(last) >= BUSY_LOG) {
            self.busy_logged = Some(now);
            let text = format!("password checks answered busy since start: {}", self.counts.busy);
            self.log(Level::Warning, Event::Limit, None, &text);
        }
    }

    fn phase(&self, worker: WorkerId, session: SessionId) -> Option<Phase> {
        self.open.get(&worker)?.get(&session).copied()
    }

    fn set(&mut self, worker: WorkerId, session: SessionId, phase: Phase) {
        self.open.entry(worker).or_default().insert(session, phase);
    }

    fn close(&mut self, worker: WorkerId, session: SessionId) {
        if let Some(open) = self.open.get_mut(&worker) {
            open.remove(&session);
        }
    }

    fn log(&mut self, level: Level, event: Event, session: Option<SessionId>, text: &str) {
        self.words.push(Word::Log(LogRecord { level, event, session, text: Blob::cut(text.as_bytes()) }));
    }
}
