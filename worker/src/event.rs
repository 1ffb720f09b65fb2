//! The loop: the only place that waits. Everything it calls returns at once.
//!
//! Reads from: clients (hostile, in session.rs), other processes (event/links.rs). A turn gives every session that has something
//! to do its bounded share.

mod links;

use std::{
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use child_ipc::link::{
    log::{Event as Happened, Level},
    monitor_worker::{FromWorker, Listener, WorkerEnd},
    settings::FtpSettings,
};
use mio::{Events, Interest, Poll};
use rustix::net::{SendFlags, send};
use slab::Slab;

use crate::{
    drain::drain,
    ftp::Event,
    helpers::Helpers,
    hub::{Hub, NEVER, Source},
    ledger::{Full, Ledger},
    link::Link,
    listeners::{AHEAD, Accepted, Listeners, PER_TURN},
    lobby::{Heard, Lobby},
    session::{Approach, Arrival, Seen, Session},
};

/// Events taken from the kernel at once.
const EVENTS: usize = 1024;
/// How long what comes next is waited for without sleeping (measured in ARCHITECTURE.md).
const LINGER: Duration = Duration::from_micros(30);
/// After so long without an event the worker rests: what serving has touched of its program may go.
const SILENCE: Duration = Duration::from_secs(2);
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
        let patience = self.patience();
        if patience.is_some_and(|time| time <= SILENCE) {
            return self.poll.poll(events, patience);
        }
        self.poll.poll(events, Some(SILENCE))?;
        if events.is_empty() {
            child_sandbox::give_back_pages();
            self.poll.poll(events, patience.map(|time| time - SILENCE))?;
        }
        Ok(())
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
            drain(&fd);
            self.hub.log(Level::Warning, Happened::Limit, None, format_args!("reason=\"{full}\" peer={peer}"));
            return;
        }
        let entry = self.sessions.vacant_entry();
        let key = entry.key();
        entry.insert(Box::new(Session::new(key, fd, arrival, &mut self.hub)));
        self.with(key, |_, _| ());
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
