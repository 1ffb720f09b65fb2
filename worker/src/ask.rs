//! Our half of every question: `ask_x` here, `answer_x` in monitor/src/answer, authd and monitor/broker/src/op.
//!
//! Reads from: brokers (hostile). A broker answers in the order of the questions; tags are compared all the same.
//!
//! When does a broker's link end? The monitor alone knows how many sessions of an account a worker has, for it deals
//! out the grants and counts them down by `SessionEnded`. If we closed the link with what we think is the last
//! session, a grant that is on its way without a descriptor would find none. So we keep it until the broker closes its
//! side, which the monitor makes it do with the last `SessionEnded`; a later grant brings a new one.

use std::{
    collections::{HashMap, VecDeque},
    num::NonZeroU32,
    os::fd::{BorrowedFd, OwnedFd},
};

use child_ipc::{
    link::{
        monitor_worker::{ConnectBack, FromWorker, PassivePool},
        worker_authd::{Check, ToAuthd},
        worker_broker::{Answer, Ask, Done, Op},
    },
    types::{BrokerId, ListenerId, Port, SessionId},
};
use mio::Registry;
use slab::Slab;

use crate::{
    conduit::Staged,
    hub::{Hub, Source},
    link::{Link, Lost, TOO_MANY_REFS},
};

/// No session has this place.
const NOBODY: usize = usize::MAX;

/// An open question to a broker.
#[derive(Debug, Clone, Copy)]
struct Question {
    tag: u32,
    session: usize,
    login: SessionId,
}

#[derive(Debug)]
struct Broker {
    id: BrokerId,
    link: Link<Ask, Answer>,
    open: VecDeque<Question>,
}

/// An answer that has arrived, with the descriptor that came along.
#[derive(Debug)]
pub struct Answered {
    /// The session that asked.
    pub session: usize,
    /// The identity it had then; if it has another one by now, the answer is nobody's.
    pub login: SessionId,
    /// The answer.
    pub answer: Answer,
    /// What came along.
    pub fd: Option<OwnedFd>,
    /// What came along beside it: where a copy goes.
    pub second: Option<OwnedFd>,
}

impl Answered {
    /// The number of an upload under a hidden name, if the answer is about one.
    pub fn staged(&self) -> Option<NonZeroU32> {
        match &self.answer.outcome {
            Ok(Done::Opened(opened)) => opened.staged,
            _ => None,
        }
    }
}

/// The brokers this worker has links to.
#[derive(Debug, Default)]
pub struct Brokers {
    links: Slab<Broker>,
    places: HashMap<BrokerId, usize>,
    last_tag: u32,
}

impl Brokers {
    /// The link to a broker, new if a descriptor came with the grant.
    pub fn attach(&mut self, id: BrokerId, fd: Option<OwnedFd>, registry: &Registry) -> Option<usize> {
        let Some(fd) = fd else { return self.places.get(&id).copied() };
        let entry = self.links.vacant_entry();
        let place = entry.key();
        let link = Link::from_fd(fd, Source::Broker(place).token(), registry).ok()?;
        entry.insert(Broker { id, link, open: VecDeque::new() });
        // A link before it, if there is one, is on its way out: its end is seen, and forgotten, in its own time.
        self.places.insert(id, place);
        Some(place)
    }

    /// Takes answers off a link until it has nothing more for us.
    pub fn receive(&mut self, place: usize) -> Result<Option<Answered>, Lost> {
        let Some(broker) = self.links.get_mut(place) else { return Ok(None) };
        let Some(received) = broker.link.recv()? else { return Ok(None) };
        let answer = received.record;
        match broker.open.pop_front() {
            Some(Question { tag, session, login }) if tag == answer.tag => {
                let mut fds = received.fds.into_iter();
                Ok(Some(Answered { session, login, answer, fd: fds.next(), second: fds.next() }))
            }
            _ => Err(Lost::Breach(child_ipc::Breach::OutOfPhase("an answer to no question"))),
        }
    }

    /// Whether answers are outstanding: if not, there is no need to look for more.
    pub fn owes(&self, place: usize) -> bool {
        self.links.get(place).is_some_and(|broker| !broker.open.is_empty())
    }

    /// Sends what waits.
    pub fn flush(&mut self, place: usize, registry: &Registry) -> Result<(), Lost> {
        self.links.get_mut(place).map_or(Ok(()), |broker| broker.link.flush(registry))
    }

    /// Who is at the other end.
    pub fn id(&self, place: usize) -> Option<BrokerId> {
        self.links.get(place).map(|broker| broker.id)
    }

    /// Forgets a link that is lost.
    pub fn forget(&mut self, place: usize) -> Option<BrokerId> {
        let broker = self.links.try_remove(place)?;
        if self.places.get(&broker.id) == Some(&place) {
            self.places.remove(&broker.id);
        }
        Some(broker.id)
    }
}

impl Hub {
    /// Asks a broker; false when its link is of no use, which the loop then finds out by itself.
    pub fn ask_broker(&mut self, place: usize, session: usize, login: SessionId, op: Op) -> bool {
        self.brokers.last_tag = self.brokers.last_tag.wrapping_add(1);
        let tag = self.brokers.last_tag;
        let Some(broker) = self.brokers.links.get_mut(place) else { return false };
        match broker.link.send(Ask { tag, op }, None, &self.registry) {
            Ok(()) => {
                broker.open.push_back(Question { tag, session, login });
                true
            }
            Err(_) => false,
        }
    }

    /// Has a broker remove an upload that comes to nothing; nobody waits for the answer.
    pub fn discard(&mut self, staged: Staged) {
        let Staged { login, broker, number } = staged;
        // A link that fails is found out by the loop, and takes what was staged with it.
        self.ask_broker(broker, NOBODY, login, Op::Discard(number));
    }

    /// Asks authd whether what a client proves itself with is right, under a fresh identity; `None` when it cannot be asked now.
    pub fn ask_check(&mut self, session: usize, check: Check) -> Option<SessionId> {
        let login = self.draw_login()?;
        let check = ToAuthd::Check(Check { session: login, ..check });
        self.authd.as_mut()?.send(check, None, &self.registry).ok()?;
        self.logins.insert(login, session);
        Some(login)
    }

    /// Tells authd that nobody waits for this check any more.
    pub fn tell_forget(&mut self, login: SessionId) {
        self.logins.remove(&login);
        if let Some(authd) = &mut self.authd {
            // A link that fails is found out by the loop.
            let _ = authd.send(ToAuthd::Forget(login), None, &self.registry);
        }
    }

    /// Tells the monitor that a granted session has ended.
    pub fn tell_ended(&mut self, login: SessionId) {
        self.logins.remove(&login);
        self.tell_monitor(FromWorker::SessionEnded(login), None);
    }

    /// Asks the monitor for a connection back to the client on the other end of `control`.
    ///
    /// False when it cannot be asked now: all workers are one user, who has too many descriptors on their way between
    /// processes (ETOOMANYREFS, sendmsg(2)), and another worker's misuse of that must not end this one.
    pub fn ask_connect_back(&mut self, session: SessionId, port: Port, control: BorrowedFd<'_>) -> bool {
        let ask = FromWorker::ConnectBack(ConnectBack { session, port: port.get() });
        match self.monitor.send(ask, Some(control), &self.registry) {
            Ok(()) => true,
            Err(Lost::Fault(_, error)) if error.raw_os_error() == Some(TOO_MANY_REFS) => false,
            Err(lost) => {
                self.fatal.get_or_insert_with(|| format!("link to the monitor: {lost}"));
                false
            }
        }
    }

    /// Asks the monitor for passive sockets.
    pub fn ask_passive_pool(&mut self, listener: ListenerId, wanted: u8) {
        self.tell_monitor(FromWorker::PassivePool(PassivePool { listener, wanted }), None);
    }

    /// Sends a record to the monitor, without whom there is nothing left to do here.
    pub fn tell_monitor(&mut self, record: FromWorker, fd: Option<BorrowedFd<'_>>) {
        if let Err(lost) = self.monitor.send(record, fd, &self.registry) {
            self.fatal.get_or_insert_with(|| format!("link to the monitor: {lost}"));
        }
    }
}
