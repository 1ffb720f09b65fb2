//! The loop: the only place that waits. Everything it calls returns at once.
//!
//! Reads from: the monitor (trusted to set up, its records checked all the same), authd and brokers (hostile), clients
//! (hostile, in session.rs). A turn gives every session that has something to do its bounded share.

use std::{
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use child_ipc::{
    link::{
        log::{Event as Happened, Level},
        monitor_worker::{FromWorker, Granted, Listener, ToWorker, WorkerEnd},
        settings::{FtpSettings, Require, unpack},
        worker_authd::{FromAuthd, Outcome, Verdict},
    },
    types::SessionId,
};
use mio::{Events, Interest, Poll};
use rustix::net::{SendFlags, send};
use slab::Slab;

use crate::{
    conduit::Staged,
    ftp::Event,
    helpers::Helpers,
    hub::{Hub, NEVER, Source},
    ledger::{Full, Ledger},
    link::{Link, Lost},
    listeners::{AHEAD, Accepted, Listeners, PER_TURN},
    lobby::{Heard, Lobby},
    session::{Approach, Arrival, Seen, Session},
    tls::Tls,
};

/// Events taken from the kernel at once.
const EVENTS: usize = 1024;
/// How long what comes next is waited for without sleeping (measured in ARCHITECTURE.md).
const LINGER: Duration = Duration::from_micros(30);
/// Due times closer than this are handled together, milliseconds.
const COARSE_MS: u64 = 1000;

/// The worker.
#[derive(Debug)]
pub struct Worker {
    poll: Poll,
    hub: Hub,
    listeners: Listeners,
    lobby: Lobby,
    /// Each by itself: a slab of them would be copied as it grows, and keep its largest size.
    sessions: Slab<Box<Session>>,
    stops: bool,
}

impl Worker {
    /// Watches the link to the monitor; the rest arrives over it.
    pub fn new(link: WorkerEnd, settings: FtpSettings, ledger: Ledger, helpers: Helpers) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let monitor = Link::new(link, Source::Monitor.token(), &registry)?;
        let hub = Hub::new(registry, monitor, settings, ledger, helpers);
        hub.watch(hub.helpers.bell(), Source::Helpers, Interest::READABLE, false)?;
        let (listeners, lobby, sessions) = Default::default();
        Ok(Worker { poll, hub, listeners, lobby, sessions, stops: false })
    }

    /// Tells the monitor something.
    pub fn tell(&mut self, record: FromWorker) {
        self.hub.tell_monitor(record, None);
    }

    /// Serves until the monitor says stop, or is gone: `Err` says why that was not in order.
    pub fn run(&mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.stops {
            self.hub.tick();
            match self.wait(&mut events) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(format!("epoll_wait: {error}")),
                _ => {}
            }
            self.hub.tick();
            let moves = |event: &mio::event::Event| matches!(Source::of(event.token()), Some(Source::Data(_)));
            self.hub.share_among(events.iter().filter(|event| moves(event)).count() + self.hub.again.len());
            // Words before bytes: a reply waits for one turn of all transfers at most.
            events.iter().filter(|event| !moves(event)).for_each(|event| self.dispatch(event));
            events.iter().filter(|event| moves(event)).for_each(|event| self.dispatch(event));
            for _ in 0..self.hub.again.len() {
                if let Some(key) = self.hub.again.pop_front() {
                    self.with(key, |session, hub| session.on_again(hub));
                }
            }
            while let Some(key) = self.hub.looked_at_now() {
                self.with(key, |session, hub| session.on_data(hub));
            }
            if self.listeners.due().is_some_and(|due| due <= self.hub.now) {
                self.listeners.wake(self.hub.now, &self.hub.registry);
            }
            if self.hub.now >= self.hub.due {
                self.expire();
            }
            if self.hub.log.due().is_some_and(|due| due <= self.hub.now) {
                self.send_log();
            }
            if let Some(why) = self.hub.fatal.take() {
                return Err(why);
            }
        }
        self.stop();
        Ok(())
    }

    /// Waits for events. After a turn that may be answered at once, it asks for a moment before it sleeps: a broker opens
    /// a file, and a client sends its next line, in less time than it takes to fall asleep and be woken.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        if std::mem::take(&mut self.hub.brisk) && self.hub.again.is_empty() {
            let until = Instant::now() + LINGER;
            while Instant::now() < until {
                self.poll.poll(events, Some(Duration::ZERO))?;
                if !events.is_empty() {
                    return Ok(());
                }
            }
        }
        self.poll.poll(events, self.patience())
    }

    /// How long the loop may wait.
    fn patience(&self) -> Option<Duration> {
        if !self.hub.again.is_empty() {
            return Some(Duration::ZERO);
        }
        // A congested link wakes the loop when it takes lines again.
        let log = if self.hub.monitor.is_congested() { None } else { self.hub.log.due() };
        let soon = self.hub.soon.front().map_or(NEVER, |(when, _)| *when);
        let due = self.hub.due.min(log.unwrap_or(NEVER)).min(soon).min(self.listeners.due().unwrap_or(NEVER));
        (due != NEVER).then(|| Duration::from_millis(due.saturating_sub(self.hub.now)))
    }

    fn dispatch(&mut self, event: &mio::event::Event) {
        self.hub.brisk = true;
        let ended = event.is_read_closed() || event.is_error();
        match Source::of(event.token()) {
            Some(Source::Control(key)) => {
                let seen = Seen { readable: event.is_readable(), urgent: event.is_priority(), ended };
                self.with(key, |session, hub| session.on_control(seen, hub));
            }
            Some(Source::Data(key) | Source::Passive(key)) => self.with(key, |session, hub| session.on_data(hub)),
            Some(Source::Broker(place)) => self.on_broker(place, ended),
            Some(Source::Listener(place)) => self.accept(place),
            Some(Source::Lobby(place)) => self.hear(place, ended),
            Some(Source::Monitor) => self.on_monitor(),
            Some(Source::Authd) => self.on_authd(),
            Some(Source::Helpers) => self.on_helpers(),
            None => {}
        }
    }

    /// Gives a session its turn, and buries it if that was its last.
    fn with(&mut self, key: usize, turn: impl FnOnce(&mut Session, &mut Hub)) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        turn(session, &mut self.hub);
        if session.is_gone() {
            session.end(&mut self.hub);
            self.sessions.remove(key);
        }
    }

    /// The same for the session of an identity.
    fn with_login(&mut self, login: SessionId, turn: impl FnOnce(&mut Session, &mut Hub)) {
        let Some(&key) = self.hub.logins.get(&login) else { return };
        self.with(key, |session, hub| {
            if session.is(login) {
                turn(session, hub);
            }
        });
    }

    fn accept(&mut self, place: usize) {
        // A client that comes first is not to be told that there is no TLS: the certificates are on their way.
        if self.hub.settings.tls.is_some() && self.hub.tls.is_none() {
            return self.listeners.leave(place, self.hub.now, &self.hub.registry);
        }
        let mut accepted = 0;
        while accepted < PER_TURN {
            match self.listeners.accept(place, self.hub.now, &self.hub.registry) {
                Accepted::Nobody => break,
                Accepted::Short(errno) => {
                    let text = format_args!("reason=\"cannot accept clients for a second\" errno={errno}");
                    self.hub.log(Level::Error, Happened::Limit, None, text);
                    return;
                }
                Accepted::Client(fd, peer, listener) => self.arrive(fd, peer, listener),
            }
            accepted += 1;
        }
        if accepted > 0 && self.hub.ledger.lead() > AHEAD {
            self.listeners.leave(place, self.hub.now, &self.hub.registry);
        } else if accepted > 0 {
            self.listeners.queue_up(place, &self.hub.registry);
        }
    }

    /// Somebody has connected: a client, or a proxy, which says first on whose behalf.
    fn arrive(&mut self, fd: OwnedFd, peer: SocketAddr, listener: Listener) {
        match self.hub.settings.places.door(listener.address).map(|door| door.admits(peer.ip())) {
            None => {
                let approach = Approach::at(listener.address, &self.hub.settings);
                self.welcome(fd, Arrival { peer, listener: listener.id, proxied: None, approach });
            }
            Some(false) => self.no_header(peer, "not one of proxies"),
            Some(true) => {
                if !self.lobby.enter(fd, peer, listener, &mut self.hub) {
                    let text = format_args!("reason=\"too many wait for their PROXY header\" peer={peer}");
                    self.hub.log(Level::Warning, Happened::Limit, None, text);
                }
            }
        }
    }

    /// A proxy has said something.
    fn hear(&mut self, place: usize, ended: bool) {
        match self.lobby.hear(place, ended, &self.hub) {
            Heard::Nothing => {}
            Heard::Client(fd, arrival) => self.welcome(fd, arrival),
            Heard::Closed(proxy, why) => self.no_header(proxy, why),
        }
    }

    fn no_header(&mut self, peer: SocketAddr, why: &str) {
        self.hub.log(Level::Warning, Happened::Refused, None, format_args!("reason=\"{why}\" peer={peer}"));
    }

    /// A client has connected, and its address is known.
    fn welcome(&mut self, fd: OwnedFd, arrival: Arrival) {
        let peer = arrival.peer;
        if let Err(full) = self.hub.ledger.take(peer.ip()) {
            let told: &[u8] = match full {
                Full::Address => b"421 Too many connections from your address; try again later.\r\n",
                _ => b"421 Too many clients; try again later.\r\n",
            };
            // Under TLS nobody could read it.
            if arrival.approach != Approach::Implicit {
                let _ = send(&fd, told, SendFlags::NOSIGNAL);
            }
            self.hub.drain(&fd);
            self.hub.log(Level::Warning, Happened::Limit, None, format_args!("reason=\"{full}\" peer={peer}"));
            return;
        }
        let entry = self.sessions.vacant_entry();
        let key = entry.key();
        entry.insert(Box::new(Session::new(key, fd, arrival, &mut self.hub)));
        self.with(key, |_, _| ());
    }

    fn on_broker(&mut self, place: usize, ended: bool) {
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

    /// Errands are done. What comes back for a session that has gone, or gave up, is closed.
    fn on_helpers(&mut self) {
        for done in self.hub.helpers.done() {
            let mut rest = Some(done.back);
            self.with(done.session, |session, hub| {
                rest = rest.take().and_then(|back| session.came_back(done.number, back, hub));
            });
            if let Some(back) = rest {
                self.hub.helpers.came_back_for_nobody(back);
            }
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

    fn on_authd(&mut self) {
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

    fn on_monitor(&mut self) {
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
                self.hub.due_at(crate::passive::Pool::due(self.hub.now));
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
    fn port_here(&mut self, key: usize, socket: Option<crate::passive::Socket>) {
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

    /// Time limits, idle passive sockets, proxies that say nothing.
    fn expire(&mut self) {
        let now = self.hub.now;
        let keys: Vec<usize> =
            self.sessions.iter().filter(|(_, session)| session.due(&self.hub) <= now).map(|(key, _)| key).collect();
        for key in keys {
            self.with(key, |session, hub| session.expire(hub));
        }
        let sessions = self.sessions.iter().map(|(_, session)| session.due(&self.hub)).min();
        let ports = self.hub.pool.expire(now);
        let (late, proxies) = self.lobby.expire(now);
        late.into_iter().for_each(|proxy| self.no_header(proxy, "no PROXY header in time"));
        let next = [sessions, ports, proxies].into_iter().flatten().min().unwrap_or(NEVER);
        self.hub.due = if next == NEVER { NEVER } else { next.max(now + COARSE_MS) };
    }

    fn send_log(&mut self) {
        while !self.hub.monitor.is_congested() {
            let lines = self.hub.log.take();
            if lines.is_empty() {
                break;
            }
            self.hub.tell_monitor(FromWorker::Lines(lines), None);
        }
    }

    /// The last turn: everybody is told, nobody is waited for.
    fn stop(&mut self) {
        let keys: Vec<usize> = self.sessions.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.with(key, |session, hub| session.deliver(Event::Farewell("The server stops."), hub));
        }
        self.send_log();
    }
}

/// Who is to blame for a lost link, as the log names it.
fn blame(lost: &Lost) -> Happened {
    match lost {
        Lost::Breach(_) => Happened::Breach,
        Lost::Closed | Lost::Fault(..) => Happened::Fault,
    }
}
