//! What sessions share: links, pool, buffers, settings, clock. A session may use it; it never sees another session.

use std::{
    collections::{HashMap, VecDeque},
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Instant,
};

use child_ipc::{
    link::{
        log::{Event, Level},
        monitor_worker::{FromWorker, ToWorker},
        settings::FtpSettings,
        worker_authd::{FromAuthd, ToAuthd},
    },
    types::SessionId,
};
use mio::{Interest, Registry, Token, unix::SourceFd};

use crate::{
    ask::Brokers,
    conduit::Staged,
    ftp::Out,
    helpers::Helpers,
    ledger::Ledger,
    link::Link,
    log::Log,
    passive::Pool,
    tls::{Tls, keys::Certificates},
    transfer::Tools,
};

/// Bytes of unfinished and waiting lines that a session may hold; more are left in its socket.
pub const QUEUE_BYTES: usize = 16 << 10;
/// Never due.
pub const NEVER: u64 = u64::MAX;

/// What an event of the loop is about; packed into mio's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The link on descriptor 0.
    Monitor,
    /// The link to authd.
    Authd,
    /// A listening socket, by its place.
    Listener(usize),
    /// A broker's link, by its place.
    Broker(usize),
    /// A session's control connection, by its place.
    Control(usize),
    /// A session's data connection.
    Data(usize),
    /// The passive socket on which a session's client is expected.
    Passive(usize),
    /// A proxy's connection that has not said on whose behalf it comes, by its place.
    Lobby(usize),
    /// The bell of the helper threads.
    Helpers,
}

impl Source {
    /// As a token.
    pub fn token(self) -> Token {
        let (kind, place) = match self {
            Source::Monitor => (0, 0),
            Source::Authd => (1, 0),
            Source::Listener(place) => (2, place),
            Source::Broker(place) => (3, place),
            Source::Control(place) => (4, place),
            Source::Data(place) => (5, place),
            Source::Passive(place) => (6, place),
            Source::Lobby(place) => (7, place),
            Source::Helpers => (8, 0),
        };
        Token(place << 4 | kind)
    }

    /// Back from a token.
    pub fn of(token: Token) -> Option<Self> {
        let place = token.0 >> 4;
        Some(match token.0 & 15 {
            0 => Source::Monitor,
            1 => Source::Authd,
            2 => Source::Listener(place),
            3 => Source::Broker(place),
            4 => Source::Control(place),
            5 => Source::Data(place),
            6 => Source::Passive(place),
            7 => Source::Lobby(place),
            8 if place == 0 => Source::Helpers,
            _ => return None,
        })
    }
}

/// What sessions share.
#[derive(Debug)]
pub struct Hub {
    /// Where descriptors are watched.
    pub registry: Registry,
    /// The link on descriptor 0.
    pub monitor: Link<FromWorker, ToWorker>,
    /// The link to authd, while it lives.
    pub authd: Option<Link<ToAuthd, FromAuthd>>,
    /// What TLS shows clients, and who signs for it.
    pub certificates: Arc<Certificates>,
    /// The brokers' links.
    pub brokers: Brokers,
    /// Passive sockets.
    pub pool: Pool,
    /// What transfers share.
    pub tools: Tools,
    /// Who waits for disks.
    pub helpers: Helpers,
    /// caisson.toml(5).
    pub settings: FtpSettings,
    /// Who holds how many connections, on all workers.
    pub ledger: Ledger,
    /// Lines for the log.
    pub log: Log,
    /// Which session an identity belongs to.
    pub logins: HashMap<SessionId, usize>,
    /// Sessions that have more to do in the next turn.
    pub again: VecDeque<usize>,
    /// Sessions that are to be looked at a moment later: when, and which; the first is the first.
    pub soon: VecDeque<(u64, usize)>,
    /// Bytes as they come from a control connection; wiped after use, for passwords are among them.
    pub input: Vec<u8>,
    /// The line queue of the session whose turn it is; wiped after use.
    pub queue: Vec<u8>,
    /// The same for records of TLS, made when it is first needed.
    pub records: Vec<u8>,
    /// What TLS connections share; `None` without any certificate.
    pub tls: Option<Tls>,
    /// What the step of the session whose turn it is emits.
    pub out: Out,
    /// The upload that came under a hidden name with the answer of this turn, until an order takes it.
    pub staged: Option<Staged>,
    /// Descriptors that may be closed when the replies of this turn are sent: the client need not wait for it.
    pub late: Vec<OwnedFd>,
    /// Bytes that each transfer may move in this turn, about.
    pub share: usize,
    /// Milliseconds since the start.
    pub now: u64,
    /// When something may be due next.
    pub due: u64,
    /// Why the worker cannot go on.
    pub fatal: Option<String>,
    /// What this turn has said may be answered in a moment.
    pub brisk: bool,
    last_login: u32,
    started: Instant,
}

/// A moment, milliseconds: longer than it takes a client that dies to close all it had.
const SOON_MS: u64 = 2;
/// Bytes that all transfers together move in one turn, about: what a reply may have to wait for.
const TURN: usize = 1 << 20;
/// The same of one that is alone: less of it would cost it turns, and a reply waits for one such turn at most.
const ALONE: usize = 4 << 20;
/// The least share of a transfer: less costs more turns than it saves time.
const LEAST_SHARE: usize = 128 << 10;

impl Hub {
    /// Divides a turn among so many transfers.
    pub fn share_among(&mut self, transfers: usize) {
        self.share = if transfers > 1 { (TURN / transfers).max(LEAST_SHARE) } else { ALONE };
    }

    /// At the start.
    pub fn new(
        registry: Registry,
        monitor: Link<FromWorker, ToWorker>,
        settings: FtpSettings,
        ledger: Ledger,
        helpers: Helpers,
    ) -> Self {
        let mut hub = Hub {
            registry,
            monitor,
            authd: None,
            certificates: Arc::default(),
            brokers: Brokers::default(),
            pool: Pool::default(),
            tools: Tools::new(&settings),
            helpers,
            ledger,
            log: Log::default(),
            logins: HashMap::new(),
            again: VecDeque::new(),
            soon: VecDeque::new(),
            input: vec![0; QUEUE_BYTES],
            // Under TLS, the record that fills it is opened whole.
            queue: Vec::with_capacity(2 * QUEUE_BYTES + 4),
            records: Vec::new(),
            tls: None,
            out: Out::default(),
            settings: FtpSettings::default(),
            staged: None,
            late: Vec::new(),
            share: ALONE,
            now: 0,
            due: NEVER,
            fatal: None,
            brisk: false,
            last_login: 0,
            started: Instant::now(),
        };
        hub.obey(settings);
        hub
    }

    /// Looks at the clock: once a turn.
    pub fn tick(&mut self) {
        self.now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(NEVER);
    }

    /// Gives this session a turn a moment later, however much else happens; says when.
    pub fn look_soon(&mut self, key: usize) -> u64 {
        let when = self.now + SOON_MS;
        self.soon.push_back((when, key));
        when
    }

    /// The next session whose moment has come.
    pub fn looked_at_now(&mut self) -> Option<usize> {
        let (when, key) = *self.soon.front()?;
        (when <= self.now).then(|| self.soon.pop_front())?;
        Some(key)
    }

    /// Something may be due then.
    pub fn due_at(&mut self, when: u64) {
        self.due = self.due.min(when);
    }

    /// A fresh identity; never the same twice. `None` when all four thousand million are used up.
    pub fn draw_login(&mut self) -> Option<SessionId> {
        self.last_login = self.last_login.checked_add(1)?;
        Some(SessionId(self.last_login))
    }

    /// A line for the log.
    pub fn log(&mut self, level: Level, event: Event, session: Option<SessionId>, text: std::fmt::Arguments<'_>) {
        if level <= self.out.log_level {
            self.log.add(level, event, session, text, self.now);
        }
    }

    /// New settings: of caisson.toml(5), at the start and after a reload.
    pub fn obey(&mut self, settings: FtpSettings) {
        self.tools.obey(&settings);
        self.out.log_level = settings.log_level;
        self.settings = settings;
        self.due_at(self.now);
    }

    /// Watches a descriptor, or changes what it is watched for.
    pub fn watch(&self, fd: BorrowedFd<'_>, source: Source, interest: Interest, known: bool) -> io::Result<()> {
        let raw = fd.as_raw_fd();
        let mut fd = SourceFd(&raw);
        if known {
            self.registry.reregister(&mut fd, source.token(), interest)
        } else {
            self.registry.register(&mut fd, source.token(), interest)
        }
    }

    /// Watches a descriptor no more. (One that is closed, and was never copied, need not be unwatched.)
    pub fn unwatch(&self, fd: BorrowedFd<'_>) {
        // It can only fail for a descriptor that is not watched.
        let _ = self.registry.deregister(&mut SourceFd(&fd.as_raw_fd()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_its_source() {
        for source in [
            Source::Monitor,
            Source::Authd,
            Source::Listener(3),
            Source::Broker(0),
            Source::Control(1 << 40),
            Source::Data(7),
            Source::Passive(9),
            Source::Helpers,
            Source::Lobby(2),
        ] {
            assert_eq!(Source::of(source.token()), Some(source));
        }
        assert_eq!(Source::of(Token(15)), None);
    }
}
