//! The monitor's state and its loop: the only place that waits. What children say is judged by table.rs, answered in answer/.
//!
//! Runs as root, sandboxed. Reads from: children (hostile), caissonctl (root, checked), signals. Never waits for one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ipc::link::log::{Event, Level};
use ipc::link::monitor_authd::{FromAuthd, ToAuthd};
use ipc::link::monitor_broker::{FromBroker, SETTINGS, ToBroker};
use ipc::link::monitor_config::{Config, User};
use ipc::link::monitor_worker::{FromWorker, ToWorker};
use ipc::types::{Blob, BrokerId, SessionId, UserName, WorkerId};
use ipc::{Breach, Received};
use nix::sys::signalfd::SignalFd;
use rustix::net::{Shutdown, shutdown};
use rustix::{event::Timespec, event::epoll, io::Errno, process::Signal};

use crate::listen::Listening;
use crate::spawn::Child;
use crate::table::{self, Sessions};
use crate::timer::{Alarm, Timers};
use crate::{answer, control, control::Control, ledger::Ledger, log::Log, reap, reload, reload::Reloads};
use crate::{certificates, certificates::Asked, config::Users};

/// What epoll calls the signals, the control socket and authd; everybody else has a number of [`Monitor::new_id`].
pub(crate) const SIGNALS: u32 = 0;
pub(crate) const CONTROL: u32 = 1;
pub(crate) const AUTHD: u32 = 2;

/// Most records taken from one child before the others have their turn.
const A_TURN: usize = 64;

pub(crate) type AuthdChild = Child<ToAuthd, FromAuthd>;
pub(crate) type WorkerChild = Child<ToWorker, FromWorker>;
pub(crate) type BrokerChild = Child<ToBroker, FromBroker>;

/// A worker, and what it may speak for.
#[derive(Debug)]
pub(crate) struct Worker {
    pub child: WorkerChild,
    /// 1 to `workers`; a worker started again has the slot of the dead one and a new [`WorkerId`].
    pub slot: usize,
    pub sessions: Sessions,
    /// Brokers it has a link to.
    pub links: BTreeSet<BrokerId>,
}

impl Worker {
    /// Refuses a session that authd vouched for and the worker has not been told of.
    pub fn withdraw(&mut self, session: SessionId) {
        self.sessions.refuse(session);
        self.child.send(ToWorker::GrantRefused(session), Vec::new());
    }
}

/// A broker, and the account it was started for.
#[derive(Debug)]
pub(crate) struct Broker {
    pub child: BrokerChild,
    pub account: UserName,
    /// What it was started with: its account's entry and the settings of brokers.
    pub settings: (User, Blob<SETTINGS>),
    /// When its last session ended, while an alarm is set to look again.
    pub idle_since: Option<Instant>,
    /// It has been told to stop, and takes no more sessions.
    pub stopping: bool,
}

/// Where the monitor is between start and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Until every process has said `Ready`; a death now ends all.
    Starting,
    Serving,
    Stopping,
}

/// Everything root knows.
pub(crate) struct Monitor {
    pub config: Config,
    pub users: Users,
    /// authd's table of names and hashes; there from the first configuration on.
    pub hashes: Option<OwnedFd>,
    /// The configuration file.
    pub file: PathBuf,
    pub reloads: Reloads,
    pub asked: Asked,
    pub listeners: Vec<Listening>,
    pub ledger: Ledger,
    pub control: Option<Control>,
    pub epoll: Rc<OwnedFd>,
    pub signals: SignalFd,
    pub timers: Timers,
    pub log: Log,
    pub stage: Stage,
    pub authd: Option<AuthdChild>,
    pub workers: BTreeMap<WorkerId, Worker>,
    pub brokers: BTreeMap<BrokerId, Broker>,
    /// Deaths in a row of authd (0) and of each worker's slot.
    pub deaths: Vec<u32>,
    /// Why the start failed.
    pub failure: Option<String>,
    pub last_id: u32,
}

impl Monitor {
    /// A number no worker, broker, listener or client had before. (It would take four billion to come round.)
    pub fn new_id(&mut self) -> u32 {
        self.last_id = self.last_id.wrapping_add(1).max(AUTHD + 1);
        self.last_id
    }

    /// Waits for something to happen, and does what follows from it.
    pub fn turn(&mut self) {
        let timeout = self.timers.next().and_then(|wait| Timespec::try_from(wait + Duration::from_millis(1)).ok());
        let mut events = Vec::with_capacity(64);
        match epoll::wait(&*self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => self.log.own(Level::Error, Event::Fault, format!("epoll_wait: {errno}")),
        }
        for event in events {
            self.happened(u32::try_from(event.data.u64()).unwrap_or(u32::MAX));
        }
        while let Some(alarm) = self.timers.due() {
            self.ring(alarm);
        }
    }

    fn happened(&mut self, id: u32) {
        match id {
            SIGNALS => self.take_signals(),
            CONTROL => control::accept(self),
            AUTHD => self.hear_authd(),
            _ if self.workers.contains_key(&WorkerId(id)) => self.hear_worker(WorkerId(id)),
            _ if self.brokers.contains_key(&BrokerId(id)) => self.hear_broker(BrokerId(id)),
            _ => match self.reloads.reading(id) {
                Some(reading) => reload::hear(reading),
                None => control::serve(self, id),
            },
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(info)) = self.signals.read_signal() {
            match Signal::from_named_raw(info.ssi_signo.cast_signed()) {
                Some(Signal::CHILD) => reap::reap(self),
                Some(Signal::HUP) => reload::ask(self, None),
                _ => reap::stop(self),
            }
        }
    }

    fn ring(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Respawn(slot) => self.respawn(slot),
            Alarm::BrokerIdle(id) => answer::session_ended::retire_idle_broker(self, id),
            Alarm::BrokerLate(id) => {
                let late = self.brokers.get_mut(&id).filter(|b| b.stopping || !b.child.ready);
                late.into_iter().for_each(|broker| broker.child.kill("did not start or stop in time"));
            }
            Alarm::ReadingLate(id) => self.reloads.reading(id).into_iter().for_each(reload::late),
            Alarm::StartOver => {
                self.failure.get_or_insert_with(|| "not every process was ready in time".to_owned());
            }
            Alarm::Look => certificates::look(self),
            Alarm::StopOver => reap::kill_everybody(self, "did not stop in time"),
            Alarm::DieOver => {
                self.log.own(Level::Error, Event::Process, "left behind what SIGKILL does not end (ps: state D)");
                // What is left holds them as well; closed this way, their ports are free.
                let _ = self.listeners.iter().flat_map(|l| &l.socket).try_for_each(|s| shutdown(s, Shutdown::Read));
                (self.authd, self.reloads.reading, self.workers, self.brokers) = Default::default();
            }
        }
    }

    /// Takes what authd has said. Also called before a worker's session counts as unknown: authd's grant is sent before
    /// the worker can learn of its session, but may lie unread behind it.
    pub fn hear_authd(&mut self) {
        for _ in 0..A_TURN {
            let Some(received) = self.authd.as_mut().and_then(Child::recv) else { return };
            if let Err(breach) = self.authd_says(received) {
                self.authd.iter_mut().for_each(|authd| authd.kill(&breach.to_string()));
            }
        }
    }

    pub fn hear_worker(&mut self, id: WorkerId) {
        for _ in 0..A_TURN {
            let Some(received) = self.workers.get_mut(&id).and_then(|w| w.child.recv()) else { return };
            if let Err(breach) = self.worker_says(id, received) {
                self.end_worker(id, &breach.to_string());
            }
        }
    }

    pub fn hear_broker(&mut self, id: BrokerId) {
        for _ in 0..A_TURN {
            let Some(received) = self.brokers.get_mut(&id).and_then(|b| b.child.recv()) else { return };
            if let Err(breach) = self.broker_says(id, received) {
                self.brokers.get_mut(&id).into_iter().for_each(|broker| broker.child.kill(&breach.to_string()));
            }
        }
    }

    fn authd_says(&mut self, Received { record, .. }: Received<FromAuthd>) -> Result<(), Breach> {
        let Some(authd) = self.authd.as_mut() else { return Ok(()) };
        table::of_authd(&record).permit(authd.ready, false)?;
        match record {
            FromAuthd::Ready(ready) => authd.is_ready(&ready, &mut self.log),
            FromAuthd::CannotStart(last) => authd.kill(&last.why.to_string()),
            FromAuthd::Log(record) => self.log.child(&authd.name, &mut authd.gate, &record),
            FromAuthd::Grant(grant) => answer::grant::answer_grant(self, grant),
            FromAuthd::Certificates(place, why) => certificates::judged(self, place, &why),
            FromAuthd::WorkerBreach(worker) => self.end_worker(worker, "broke the contract of its link to authd"),
        }
        Ok(())
    }

    fn worker_says(&mut self, id: WorkerId, received: Received<FromWorker>) -> Result<(), Breach> {
        let vouched = match &received.record {
            FromWorker::ConnectBack(ask) => self.holds(id, |sessions| sessions.may_move(ask.session)),
            FromWorker::SessionEnded(session) => self.holds(id, |sessions| sessions.may_end(*session)),
            _ => false,
        };
        let Some(Worker { child, .. }) = self.workers.get_mut(&id) else { return Ok(()) };
        table::of_worker(&received.record).permit(child.ready, vouched)?;
        match received.record {
            FromWorker::Ready(ready) => child.is_ready(&ready, &mut self.log),
            FromWorker::CannotStart(last) => child.kill(&last.why.to_string()),
            FromWorker::Log(record) => self.log.child(&child.name, &mut child.gate, &record),
            FromWorker::Lines(v) => v.iter().for_each(|record| self.log.child(&child.name, &mut child.gate, record)),
            FromWorker::PassivePool(ask) => answer::passive_sockets::answer_passive_pool(self, id, ask)?,
            FromWorker::ConnectBack(ask) => answer::connect_back::answer_connect_back(self, id, ask, &received.fds),
            FromWorker::SessionEnded(session) => answer::session_ended::answer_session_ended(self, id, session),
        }
        Ok(())
    }

    fn broker_says(&mut self, id: BrokerId, Received { record, .. }: Received<FromBroker>) -> Result<(), Breach> {
        let Some(broker) = self.brokers.get_mut(&id) else { return Ok(()) };
        table::of_broker(&record).permit(broker.child.ready, false)?;
        match record {
            FromBroker::Ready(ready) => {
                broker.child.is_ready(&ready, &mut self.log);
                answer::grant::grant_waiting(self, id);
            }
            FromBroker::CannotStart(last) => broker.child.kill(&last.why.to_string()),
            FromBroker::Log(record) => self.log.child(&broker.child.name, &mut broker.child.gate, &record),
            // Of others a broker that was taken over would say anything.
            FromBroker::WorkerBreach(worker) if self.workers.get(&worker).is_some_and(|w| w.links.contains(&id)) => {
                self.end_worker(worker, "broke the contract of its link to a broker");
            }
            FromBroker::WorkerBreach(_) => {}
        }
        Ok(())
    }

    /// Whether this holds of a worker's sessions, once authd has been heard out.
    fn holds(&mut self, id: WorkerId, of: impl Fn(&Sessions) -> bool) -> bool {
        let now = |m: &Monitor| m.workers.get(&id).is_some_and(|worker| of(&worker.sessions));
        if !now(self) {
            self.hear_authd();
        }
        now(self)
    }

    /// Kills a worker; reap.rs starts another in its place.
    pub fn end_worker(&mut self, id: WorkerId, why: &str) {
        if let Some(worker) = self.workers.get_mut(&id) {
            let text = format!("killed process=\"{}\" reason=\"{why}\"", worker.child.name);
            self.log.own(Level::Error, Event::Breach, text);
            worker.child.kill(why);
        }
    }
}
