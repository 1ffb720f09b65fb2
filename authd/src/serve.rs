//! The loop: the monitor's link, the workers' links, and the only place that waits.
//!
//! Reads from: workers (hostile), the monitor (trusted, checked all the same). No link can hold up another one: all
//! are non-blocking, a worker has a bounded part of every turn, and while the monitor does not read, nothing new is
//! asked or begun, so that no grant is lost. A grant always leaves before its accepting verdict.
//! Not here: what a verdict rests on (checks.rs).

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use child_ipc::{
    Breach, RecvError, SendError,
    link::{
        log::{Event, Level, LogRecord},
        monitor_authd::{FromAuthd as ToMonitor, ToAuthd as FromMonitor},
        worker_authd::{FromAuthd as ToWorker, ToAuthd as FromWorker},
    },
    types::{Blob, WorkerId},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    checks::{Desk, Word},
    error::Error,
    keys::{self, Wrong},
    outlet::Outlet,
    sign::Signer,
    users::Table,
};

/// Most workers; the monitor has one per CPU and role.
const MOST_WORKERS: usize = 1024;
/// Records one link may say in one turn.
const BURST: usize = 32;
/// While more records than this wait for the monitor, no worker is heard, no check begins, and log lines are dropped.
const CONGESTED: usize = 128;
/// While more verdicts than this wait for a worker, it is not heard.
const SLOW: usize = 64;
/// A worker that leaves more verdicts than this unread is given up.
const MOST_UNREAD: usize = 1024;

/// The monitor's link, kept non-blocking.
pub type MonitorLink = Outlet<ToMonitor, FromMonitor>;
type WorkerLink = Outlet<ToWorker, FromWorker>;

/// Everything the loop turns on.
pub struct Server {
    monitor: MonitorLink,
    workers: BTreeMap<WorkerId, WorkerLink>,
    desk: Desk,
    signer: Signer,
    /// The table of certificates for workers, which come later.
    chains: Option<OwnedFd>,
    /// What the files were that were judged last, and whether they could be used.
    seen: (Option<[u8; 32]>, bool),
    /// Log lines dropped since the last one that was taken.
    lost: u64,
}

/// What has something to say.
#[derive(Default)]
struct Ready {
    monitor: bool,
    desk: bool,
    signer: bool,
    workers: Vec<WorkerId>,
}

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}

impl Server {
    /// A server without workers.
    pub fn new(monitor: MonitorLink, desk: Desk, signer: Signer) -> Self {
        Server { monitor, workers: BTreeMap::new(), desk, signer, chains: None, seen: (None, false), lost: 0 }
    }

    /// Serves until the monitor says stop or closes its link.
    pub fn run(mut self) -> Result<(), Error> {
        loop {
            let ready = self.wait()?;
            let now = Instant::now();
            if ready.monitor && self.hear_monitor()? == Next::Stop {
                return Ok(());
            }
            if ready.desk {
                self.desk.finish(now);
            }
            if ready.signer {
                self.signer.breaches().iter().for_each(|(worker, breach)| self.give_up(*worker, breach));
            }
            for worker in ready.workers {
                self.hear_worker(worker, now);
            }
            self.desk.release(now);
            if self.speak(now)? == Next::Stop {
                return Ok(());
            }
        }
    }

    fn wait(&self) -> Result<Ready, Error> {
        let timeout = self.desk.due().map(|due| due.saturating_duration_since(Instant::now()));
        // A refusal held back until just before the next millisecond must not make the loop spin.
        let timeout = timeout.map(|wait| Timespec::try_from(wait + Duration::from_millis(1)).unwrap_or_default());
        let congested = self.congested();
        let mut names = vec![];
        let mut fds = vec![
            PollFd::new(&self.monitor, PollFlags::IN | wants_out(self.monitor.waiting())),
            PollFd::from_borrowed_fd(self.desk.bell(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signer.bell(), PollFlags::IN),
        ];
        for (worker, link) in &self.workers {
            let hears = if congested || link.waiting() > SLOW { PollFlags::empty() } else { PollFlags::IN };
            let wanted = hears | wants_out(link.waiting());
            // Left out altogether when nothing is wanted: a hang-up would be reported again and again.
            if !wanted.is_empty() {
                names.push((*worker, hears));
                fds.push(PollFd::new(link, wanted));
            }
        }
        rustix::io::retry_on_intr(|| poll(&mut fds, timeout.as_ref())).map_err(Error::fault("poll"))?;
        let spoke = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        let mut fds = fds.iter().map(spoke);
        let mut next = || fds.next() == Some(true);
        let (monitor, desk, signer) = (next(), next(), next());
        let workers = names.iter().zip(fds).filter(|((_, hears), spoke)| *spoke && !hears.is_empty());
        Ok(Ready { monitor, desk, signer, workers: workers.map(|((worker, _), _)| *worker).collect() })
    }

    fn congested(&self) -> bool {
        self.monitor.waiting() > CONGESTED
    }

    fn hear_monitor(&mut self) -> Result<Next, Error> {
        for _ in 0..BURST {
            match self.monitor.recv() {
                Ok(Some(received)) => {
                    if self.obey(received.record, received.fds)? == Next::Stop {
                        return Ok(Next::Stop);
                    }
                }
                Ok(None) => break,
                Err(RecvError::Closed | RecvError::WouldBlock) => return Ok(Next::Stop),
                Err(RecvError::Breach(breach)) => return Err(Error::Violation(breach)),
                Err(RecvError::Io(error)) => return Err(Error::fault("recvmsg")(error)),
            }
        }
        Ok(Next::Continue)
    }

    fn obey(&mut self, record: FromMonitor, mut fds: Vec<OwnedFd>) -> Result<Next, Error> {
        // The channel has counted: a record that declares descriptors has them.
        match (record, fds.pop(), fds.pop()) {
            (FromMonitor::Users, Some(memfd), None) => self.take_users(&memfd),
            (FromMonitor::AddWorker(worker), Some(signs), Some(checks)) => self.add_worker(worker, checks, signs)?,
            (FromMonitor::DropWorker(worker), ..) => self.drop_worker(worker),
            (FromMonitor::Certificates(new), key, certificate) => {
                fds.extend([certificate, key].into_iter().flatten());
                let judged = self.take_certificates(&fds, new);
                let (place, why) = judged.map_or_else(|wrong| (wrong.place, wrong.why), |()| (0, String::new()));
                // Workers know before the monitor says that all is ready.
                self.flush_workers();
                self.monitor.push(ToMonitor::Certificates(place, Blob::cut(why.as_bytes())));
            }
            (FromMonitor::Settings(settings), ..) => {
                self.desk.set_ttl(Duration::from_secs(settings.login_cache_ttl_secs.into()));
            }
            (FromMonitor::Stop, ..) => {
                let summary = self.desk.summary();
                self.log(Level::Info, Event::Process, &summary);
                // Best effort: the monitor may be past reading.
                let _ = self.monitor.flush(drop);
                return Ok(Next::Stop);
            }
            (FromMonitor::Start(_), ..) => return Err(Error::Violation(Breach::OutOfPhase("started already"))),
            (FromMonitor::Users | FromMonitor::AddWorker(_), ..) => {
                return Err(Error::Violation(Breach::Descriptors { expected: 1..=1, got: 0 }));
            }
        }
        Ok(Next::Continue)
    }

    fn take_users(&mut self, memfd: &OwnedFd) {
        match Table::read(memfd.as_fd()) {
            Ok(users) => {
                let text = format!("user table taken over: accounts={}", users.accounts());
                self.desk.set_users(users);
                self.log(Level::Debug, Event::Process, &text);
            }
            Err(error) => {
                let text = format!("user table not taken over, the one before stays: {error}");
                self.log(Level::Error, Event::Fault, &text);
            }
        }
    }

    /// Takes keys over and tells workers, unless they are what they were; `new`: what was wrong with them is said once more.
    fn take_certificates(&mut self, files: &[OwnedFd], new: bool) -> Result<(), Wrong> {
        if files.is_empty() && self.chains.is_none() {
            return Ok(());
        }
        let seen = keys::fingerprint(files);
        let same = seen.is_some() && seen == self.seen.0;
        if same && (self.seen.1 || !new) {
            return Ok(());
        }
        self.seen = (seen, false);
        let (keys, chains) = keys::read(files)?;
        let text = format!("certificates taken over: keys={}", keys.len());
        // Before the workers are told of them.
        self.signer.set_keys(keys);
        self.seen.1 = true;
        self.chains = Some(chains);
        self.workers.values_mut().for_each(|link| tell_certificates(link, self.chains.as_ref()));
        self.log(Level::Info, Event::Process, &text);
        Ok(())
    }

    fn add_worker(&mut self, worker: WorkerId, link: OwnedFd, signs: OwnedFd) -> Result<(), Error> {
        if self.workers.contains_key(&worker) || self.workers.len() >= MOST_WORKERS {
            return Err(Error::Violation(Breach::OutOfPhase("every worker once, and 1024 at most")));
        }
        let mut link = WorkerLink::from_fd(link).map_err(Error::fault("link of a worker"))?;
        tell_certificates(&mut link, self.chains.as_ref());
        self.workers.insert(worker, link);
        self.signer.add_worker(worker, signs).map_err(Error::fault("signing link of a worker"))
    }

    fn drop_worker(&mut self, worker: WorkerId) {
        self.workers.remove(&worker);
        self.signer.drop_worker(worker);
        self.desk.forget_worker(worker);
    }

    fn hear_worker(&mut self, worker: WorkerId, now: Instant) {
        for _ in 0..BURST {
            if self.congested() {
                return;
            }
            let Some(link) = self.workers.get_mut(&worker) else { return };
            let heard = match link.recv() {
                Ok(Some(received)) => match received.record {
                    FromWorker::Check(check) => self.desk.ask(worker, check, now),
                    FromWorker::Forget(session) => {
                        self.desk.forget(worker, session);
                        Ok(())
                    }
                },
                Ok(None) | Err(RecvError::WouldBlock) => return,
                // The monitor sees it die, too.
                Err(RecvError::Closed) => return self.drop_worker(worker),
                Err(RecvError::Breach(breach)) => Err(breach),
                Err(RecvError::Io(error)) => {
                    self.log(Level::Error, Event::Fault, &format!("worker={worker} recvmsg: {error}"));
                    return self.drop_worker(worker);
                }
            };
            if let Err(breach) = heard {
                return self.give_up(worker, &breach);
            }
        }
    }

    fn give_up(&mut self, worker: WorkerId, breach: &Breach) {
        self.drop_worker(worker);
        self.log(Level::Warning, Event::Breach, &format!("worker={worker} broke the contract: {breach}"));
        self.monitor.push(ToMonitor::WorkerBreach(worker));
    }

    /// Says what there is to say, and lets new checks begin.
    fn speak(&mut self, now: Instant) -> Result<Next, Error> {
        if self.flush_monitor()? == Next::Stop {
            return Ok(Next::Stop);
        }
        if !self.congested() {
            self.desk.start(now);
        }
        for word in self.desk.words() {
            match word {
                Word::Grant(grant) => self.monitor.push(ToMonitor::Grant(grant)),
                Word::Log(record) => self.log_record(record),
                Word::Verdict(worker, verdict) => {
                    if let Some(link) = self.workers.get_mut(&worker) {
                        link.push(ToWorker::Verdict(verdict));
                    }
                }
            }
        }
        let next = self.flush_monitor()?;
        self.flush_workers();
        Ok(next)
    }

    /// Sends to the monitor; every grant that was sent lets its verdict go.
    fn flush_monitor(&mut self) -> Result<Next, Error> {
        let (desk, workers) = (&mut self.desk, &mut self.workers);
        let flushed = self.monitor.flush(|record| {
            let ToMonitor::Grant(grant) = record else { return };
            if let (Some(link), Some(verdict)) =
                (workers.get_mut(&grant.worker), desk.granted(grant.worker, grant.session))
            {
                link.push(ToWorker::Verdict(verdict));
            }
        });
        match flushed {
            Ok(()) | Err(SendError::WouldBlock) => Ok(Next::Continue),
            Err(SendError::Closed) => Ok(Next::Stop),
            Err(SendError::Contract(breach)) => Err(Error::fault("a record of ours")(std::io::Error::other(breach))),
            Err(SendError::Io(error)) => Err(Error::fault("sendmsg")(error)),
        }
    }

    fn flush_workers(&mut self) {
        let mut gone = vec![];
        for (worker, link) in &mut self.workers {
            match link.flush(drop) {
                Ok(()) | Err(SendError::WouldBlock) if link.waiting() <= MOST_UNREAD => {}
                Ok(()) | Err(SendError::WouldBlock) => gone.push((*worker, Some("its verdicts must be read"))),
                Err(_) => gone.push((*worker, None)),
            }
        }
        for (worker, breach) in gone {
            match breach {
                Some(rule) => self.give_up(worker, &Breach::OutOfPhase(rule)),
                None => self.drop_worker(worker),
            }
        }
    }

    fn log(&mut self, level: Level, event: Event, text: &str) {
        self.log_record(LogRecord { level, event, session: None, text: Blob::cut(text.as_bytes()) });
    }

    fn log_record(&mut self, record: LogRecord) {
        if self.congested() {
            self.lost += 1;
            return;
        }
        if self.lost > 0 {
            let text = format!("log lines dropped while caissond did not read: {}", self.lost);
            self.lost = 0;
            self.log(Level::Warning, Event::Limit, &text);
        }
        self.monitor.push(ToMonitor::Log(record));
    }
}

/// Tells a worker of the certificates, if there are any.
fn tell_certificates(link: &mut WorkerLink, chains: Option<&OwnedFd>) {
    // Without a descriptor for it the worker keeps the ones before, and handshakes fail; fcntl(2) fails for want of them alone.
    if let Some(Ok(chains)) = chains.map(OwnedFd::try_clone) {
        link.push_with(ToWorker::Certificates, chains);
    }
}

fn wants_out(waiting: usize) -> PollFlags {
    if waiting > 0 { PollFlags::OUT } else { PollFlags::empty() }
}
