//! What the other processes say: answers of brokers, verdicts and certificates of authd, orders of the monitor; and what becomes of
//! the sessions that waited for one that is gone.
//!
//! Reads from: the monitor (trusted to set up, its records checked all the same), authd and brokers (hostile).
//! Not here: waiting (event.rs), the links themselves (link.rs, ask.rs).

use std::os::fd::OwnedFd;

use child_ipc::{
    link::{
        log::{Event as Happened, Level},
        monitor_worker::{Granted, ToWorker},
        settings::{FtpSettings, Require, unpack},
        worker_authd::{FromAuthd, Outcome, Verdict},
    },
    types::SessionId,
};

use super::Worker;
use crate::{
    conduit::Staged,
    ftp::Event,
    hub::{Hub, Source},
    link::{Link, Lost},
    passive::{Pool, Socket},
    session::Session,
    tls::Tls,
};

impl Worker {
    pub(super) fn on_broker(&mut self, place: usize, ended: bool) {
        let mut result = self.hub.brokers.flush(place, &self.hub.registry);
        while result.is_ok() {
            match self.hub.brokers.receive(place) {
                Ok(Some(answered)) => {
                    let more = self.hub.brokers.owes(place);
                    let (key, login, staged) = (answered.session, answered.login, answered.staged());
                    let mut known = false;
                    self.with(key, |session, hub| {
                        known = session.is(login);
                        if known {
                            session.answered(answered, hub);
                        }
                    });
                    if let Some(number) = staged.filter(|_| !known) {
                        self.hub.discard(Staged { login, broker: place, number });
                    }
                    // Edge-triggered, but what comes without a question is a breach. The end may have come with the answer.
                    if !more && !ended {
                        return;
                    }
                }
                Ok(None) => return,
                Err(lost) => result = Err(lost),
            }
        }
        if let Err(lost) = result {
            self.broker_lost(place, &lost);
        }
    }

    fn broker_lost(&mut self, place: usize, lost: &Lost) {
        let Some(id) = self.hub.brokers.forget(place) else { return };
        let sessions: Vec<usize> =
            self.sessions.iter().filter(|(_, session)| session.uses_broker(place)).map(|(key, _)| key).collect();
        // Without sessions this is how every link ends (ask.rs).
        if !sessions.is_empty() || !matches!(lost, Lost::Closed) {
            let text = format_args!("link=broker broker={id} sessions={} reason=\"{lost}\"", sessions.len());
            self.hub.log(Level::Error, blame(lost), None, text);
        }
        for key in sessions {
            self.with(key, |session, hub| session.broker_lost(hub));
        }
    }

    pub(super) fn on_authd(&mut self) {
        let lost = loop {
            let Some(link) = &mut self.hub.authd else { return };
            match link.flush(&self.hub.registry).and_then(|()| link.recv()) {
                Ok(Some(mut received)) => match received.record {
                    FromAuthd::Verdict(verdict) => self.verdict(verdict),
                    FromAuthd::Certificates => self.take_certificates(received.fds.pop()),
                },
                Ok(None) => return,
                Err(lost) => break lost,
            }
        };
        self.hub.log(Level::Error, blame(&lost), None, format_args!("link=authd reason=\"{lost}\""));
        self.authd_lost();
    }

    fn verdict(&mut self, Verdict { session, outcome }: Verdict) {
        self.with_login(session, |session, hub| {
            // An accepting one counts for nothing: the monitor's grant does.
            if outcome != Outcome::Accepted && session.is_asking() {
                session.refused(Event::Verdict(outcome), hub);
            }
        });
    }

    /// New handshakes get these; what has begun goes on with what it has.
    fn take_certificates(&mut self, table: Option<OwnedFd>) {
        if let Some(Err(error)) = table.map(|table| self.hub.certificates.replace(table)) {
            self.hub.log(Level::Error, Happened::Fault, None, format_args!("certificates not taken over: {error}"));
        }
        if self.hub.certificates.is_empty() || self.hub.tls.is_some() {
            return;
        }
        match Tls::new(self.hub.certificates.clone()) {
            Ok(tls) => self.hub.tls = Some(tls),
            Err(error) => self.hub.log(Level::Error, Happened::Fault, None, format_args!("no TLS: {error}")),
        }
    }

    /// Nobody answers what was asked: those clients may try again.
    fn authd_lost(&mut self) {
        self.hub.authd = None;
        self.hub.certificates.disconnect();
        let asking: Vec<usize> =
            self.sessions.iter().filter(|(_, session)| session.is_asking()).map(|(key, _)| key).collect();
        for key in asking {
            self.with(key, |session, hub| session.refused(Event::NoAuthd, hub));
        }
    }

    pub(super) fn on_monitor(&mut self) {
        while !self.stops {
            let received = self.hub.monitor.flush(&self.hub.registry).and_then(|()| self.hub.monitor.recv());
            match received {
                Ok(Some(received)) => self.obey(received.record, received.fds),
                Ok(None) => return,
                Err(lost) => {
                    self.hub.fatal = Some(format!("link to the monitor: {lost}"));
                    return;
                }
            }
        }
    }

    /// Does what the monitor says.
    fn obey(&mut self, record: ToWorker, mut fds: Vec<OwnedFd>) {
        match record {
            ToWorker::Start(_) | ToWorker::Region(_) => {
                self.hub.fatal = Some("link to the monitor: Start or Region came late".into());
            }
            ToWorker::Authd => {
                if self.hub.authd.is_some() {
                    self.authd_lost();
                }
                let signs = fds.pop().map(|fd| self.hub.certificates.connect(fd));
                let link = fds.pop().map(|fd| Link::from_fd(fd, Source::Authd.token(), &self.hub.registry));
                match link {
                    Some(Ok(link)) if matches!(signs, Some(Ok(()))) => self.hub.authd = Some(link),
                    other => self.hub.fatal = Some(format!("links to authd: {other:?}, {signs:?}")),
                }
            }
            ToWorker::Listener(listener) => {
                let added = fds.pop().map(|fd| self.listeners.add(listener, fd, &self.hub.registry));
                if let Some(Err(error)) = added {
                    self.hub.fatal = Some(format!("listener {}: {error}", listener.address));
                }
            }
            ToWorker::CloseListener(id) => self.listeners.close(id, &self.hub.registry),
            ToWorker::Settings(packed) => match unpack::<FtpSettings, _>(&packed) {
                Ok(settings) => {
                    self.hub.ledger.obey(&settings, self.sessions.iter().map(|(_, session)| session.address()));
                    self.hub.obey(settings);
                }
                Err(breach) => self.hub.fatal = Some(format!("link to the monitor: settings: {breach}")),
            },
            ToWorker::PassivePool(reply) => {
                let arrived = self.hub.pool.arrived(reply.listener, fds, self.hub.now);
                if let Some(wanted) = arrived.again {
                    self.hub.ask_passive_pool(reply.listener, wanted);
                }
                for (key, socket) in arrived.served {
                    self.port_here(key, socket);
                }
                self.hub.due_at(Pool::due(self.hub.now));
            }
            ToWorker::ConnectBack(reply) => {
                let fd = fds.pop();
                self.with_login(reply.session, |session, hub| session.connecting(fd, hub));
            }
            ToWorker::Granted(granted) => self.granted(granted, fds.pop()),
            ToWorker::GrantRefused(login) => self.with_login(login, |session, hub| {
                if session.is_asking() {
                    session.refused(Event::GrantRefused, hub);
                }
            }),
            ToWorker::Kick(login) => {
                let event = Event::Farewell("Closed by the administrator.");
                self.with_login(login, |session, hub| session.deliver(event, hub));
            }
            ToWorker::Stop => self.stops = true,
        }
    }

    /// A passive socket for a session that may have gone meanwhile.
    fn port_here(&mut self, key: usize, socket: Option<Socket>) {
        if self.sessions.contains(key) {
            self.with(key, |session, hub| session.port_here(socket, hub));
        } else if let Some(socket) = socket {
            self.hub.pool.release(socket, self.hub.now);
        }
    }

    /// authd vouched for a session. One that is gone, or whose broker cannot be reached, is over at once; and so is one without the
    /// TLS that the account demands, which authd refuses unless it and the monitor hold different user tables just now.
    fn granted(&mut self, granted: Granted, fd: Option<OwnedFd>) {
        let Granted { session: login, broker, tls_required } = granted;
        let required = Require::of(tls_required);
        let place = self.hub.brokers.attach(broker, fd, &self.hub.registry);
        let session = self.hub.logins.get(&login).and_then(|&key| self.sessions.get(key));
        let awaited = session.is_some_and(|session| session.awaits(login, required));
        match place {
            Some(place) if awaited => {
                self.with_login(login, |session, hub| session.granted(login, broker, place, required, hub));
            }
            _ => {
                self.with_login(login, |session, hub| session.refused(Event::GrantRefused, hub));
                self.hub.tell_ended(login);
            }
        }
    }

    /// Gives the session of an identity its turn, if there is one.
    fn with_login(&mut self, login: SessionId, turn: impl FnOnce(&mut Session, &mut Hub)) {
        let Some(&key) = self.hub.logins.get(&login) else { return };
        self.with(key, |session, hub| {
            if session.is(login) {
                turn(session, hub);
            }
        });
    }
}

/// Who is to blame for a lost link, as the log names it.
fn blame(lost: &Lost) -> Happened {
    match lost {
        Lost::Breach(_) => Happened::Breach,
        Lost::Closed | Lost::Fault(..) => Happened::Fault,
    }
}
