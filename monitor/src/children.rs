//! Who the children are: starts authd, workers and brokers, and lays the links between them.
//!
//! Everything a child needs is sent right behind its `Start`; the socket holds it until the child is confined and reads.

use std::hash::BuildHasher;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use ipc::link::Confine;
use ipc::link::log::{Event, Level};
use ipc::link::monitor_authd::{AuthdStart, ToAuthd};
use ipc::link::monitor_broker::{BrokerStart, SETTINGS, ToBroker};
use ipc::link::monitor_config::User;
use ipc::link::monitor_worker::{Listener, ToWorker, WorkerStart};
use ipc::types::{Blob, BrokerId, Build, Ids, UserName, WorkerId};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::geteuid;

use crate::monitor::{AUTHD, AuthdChild, Broker, BrokerChild, Monitor, Stage, Worker, WorkerChild};
use crate::{certificates, listen::Listening, spawn, table::Sessions, timer::Alarm};

/// How long a broker may take to open the account's root directory and confine itself.
const BROKER_START: Duration = Duration::from_secs(5);

/// A link between two children, one end each.
pub(crate) fn link() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Gives a worker a copy of a listener that is open.
pub(crate) fn offer(worker: &mut WorkerChild, listening: &Listening) -> io::Result<()> {
    if let Some(socket) = &listening.socket {
        let record = ToWorker::Listener(Listener { id: listening.id, address: listening.address });
        worker.send(record, vec![socket.try_clone()?]);
    }
    Ok(())
}

/// What authd computes hashes in is worth huge pages: an eighth of the time of a check (mallopt(3), GLIBC_TUNABLES).
const HUGE_PAGES: &str = "glibc.malloc.hugetlb=1";

impl Monitor {
    fn confine(&self, ids: Option<&Ids>) -> Confine {
        Confine { ids: ids.filter(|_| geteuid().is_root()).cloned(), best_effort: self.config.fixed.best_effort }
    }

    fn program(&self, name: &'static str) -> spawn::From<'_> {
        (name, self.config.fixed.program_dir.as_deref())
    }

    /// Starts authd, gives it the users, and links it with every worker there is.
    pub fn start_authd(&mut self) -> io::Result<()> {
        let hashes = self.hashes.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
        let mut authd =
            AuthdChild::start(self.program("caisson-authd"), "authd".into(), &self.epoll, AUTHD, HUGE_PAGES)?;
        let confine = self.confine(self.config.fixed.authd_ids.as_ref());
        let settings = self.config.authd;
        authd.send(ToAuthd::Start(AuthdStart { build: Build::THIS, confine, settings }), Vec::new());
        authd.send(ToAuthd::Users, hashes);
        self.authd = Some(authd);
        let (fresh, clients) = self.asked.take().unwrap_or_default();
        certificates::ask(self, fresh, clients);
        let workers: Vec<WorkerId> = self.workers.keys().copied().collect();
        workers.into_iter().for_each(|id| self.link_with_authd(id));
        Ok(())
    }

    /// Starts the worker of a slot, gives it the listeners, and links it with authd.
    pub fn start_worker(&mut self, slot: usize) -> io::Result<()> {
        let id = WorkerId(self.new_id());
        let mut child =
            WorkerChild::start(self.program("caisson-worker"), format!("worker {slot}"), &self.epoll, id.0, "")?;
        let confine = self.confine(self.config.fixed.worker_ids.as_ref());
        let ledger = (BuildHasher::hash_one(&self.ledger.keys, ()), self.config.fixed.workers);
        let start =
            WorkerStart { build: Build::THIS, confine, worker: id, settings: self.config.workers.clone(), ledger };
        child.send(ToWorker::Start(start), Vec::new());
        for (number, (write, read)) in (1..).zip(&self.ledger.regions) {
            child.send(ToWorker::Region(number == slot), vec![if number == slot { write } else { read }.try_clone()?]);
        }
        for listening in &self.listeners {
            offer(&mut child, listening)?;
        }
        self.workers.insert(id, Worker { child, slot, sessions: Sessions::default(), links: Default::default() });
        self.link_with_authd(id);
        Ok(())
    }

    /// A worker that cannot ask authd is of no use, and is ended.
    fn link_with_authd(&mut self, id: WorkerId) {
        let (Some(authd), Some(worker)) = (self.authd.as_mut(), self.workers.get_mut(&id)) else { return };
        match link().and_then(|checks| Ok((checks, link()?))) {
            Ok(((checks, asks), (signs, wants))) => {
                authd.send(ToAuthd::AddWorker(id), vec![checks, signs]);
                worker.child.send(ToWorker::Authd, vec![asks, wants]);
            }
            Err(e) => worker.child.kill(&format!("no link to authd: socketpair: {e}")),
        }
    }

    /// Starts a broker for an account. It opens the account's root directory itself, for that may take as long as a disk likes.
    pub fn start_broker(&mut self, account: UserName, settings: (User, Blob<SETTINGS>)) -> io::Result<BrokerId> {
        let user = &settings.0;
        let id = BrokerId(self.new_id());
        let mut child =
            BrokerChild::start(self.program("caisson-broker"), format!("broker {account}"), &self.epoll, id.0, "")?;
        let start = BrokerStart {
            build: Build::THIS,
            confine: self.confine(user.ids.as_ref()),
            account: account.clone(),
            permissions: user.permissions,
            home: user.home.clone(),
            settings: settings.1.clone(),
            // One more than there are workers: a new worker may come before the thread of a dead one has ended.
            slots: u16::try_from(self.config.fixed.workers + 1).unwrap_or(256).min(256),
        };
        child.send(ToBroker::Start(start), Vec::new());
        self.brokers.insert(id, Broker { child, account, settings, idle_since: None, stopping: false });
        self.timers.set(BROKER_START, Alarm::BrokerLate(id));
        Ok(id)
    }

    /// Starts authd (0) or the worker of a slot again; tries later if that fails.
    pub fn respawn(&mut self, slot: usize) {
        if self.stage == Stage::Stopping {
            return;
        }
        let started = if slot == 0 { self.start_authd() } else { self.start_worker(slot) };
        if let Err(e) = started {
            self.log.own(Level::Error, Event::Fault, format!("cannot start a process again: {e}"));
            self.timers.set(Duration::from_secs(1), Alarm::Respawn(slot));
        }
    }
}
