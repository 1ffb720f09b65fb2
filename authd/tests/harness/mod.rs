//! Plays monitor and workers to the real program, over real links.
#![allow(dead_code, reason = "each test program uses a part")]

use std::{
    io::Read,
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, ExitStatus, Stdio},
    sync::LazyLock,
    time::Duration,
};

use authd::verify::Arena;
use child_ipc::{
    Channel, RecvError,
    link::{
        Confine,
        log::{Event, LogRecord},
        monitor_authd::{self, AuthdSettings, AuthdStart, FromAuthd, Grant, ToAuthd},
        user_record::UserRecord,
        worker_authd::{self, Check, Outcome, Verdict},
        worker_keys,
    },
    types::{Blob, Build, Ids, Secret, SessionId, UserName, WorkerId},
};
use rustix::{
    fs::{MemfdFlags, SealFlags},
    net::sockopt::{Timeout, set_socket_timeout},
};
use stored_hash::{Cost, Stored};

/// As cheap as a stored hash may be.
pub const CHEAP: Cost = Cost { memory: 19_456, passes: 2, lanes: 1 };
/// Costly enough that everything sent right behind it finds it running.
pub const SLOW: Cost = Cost { memory: 65_536, passes: 32, lanes: 1 };
/// alice's password.
pub const PASSWORD: &[u8] = b"correct horse";
/// What nothing takes as long as: then it is not coming.
const PATIENCE: Duration = Duration::from_secs(60);

/// One check thread, cache off.
pub const PLAIN: AuthdSettings = AuthdSettings { max_concurrent_password_checks: 1, login_cache_ttl_secs: 0 };
/// One check thread, cache on.
pub const CACHED: AuthdSettings = AuthdSettings { max_concurrent_password_checks: 1, login_cache_ttl_secs: 300 };

/// The program, seen by its monitor.
pub struct Authd {
    pub child: Child,
    pub link: Channel<ToAuthd, FromAuthd>,
    workers: u32,
}

impl Authd {
    /// Starts the program; it is ready.
    pub fn start(settings: AuthdSettings) -> Self {
        let mut authd = Self::start_unready(settings);
        match authd.hear() {
            FromAuthd::Ready(_) => authd,
            other => panic!("not ready: {other:?}"),
        }
    }

    /// Starts the program and says `Start`.
    pub fn start_unready(settings: AuthdSettings) -> Self {
        let mut authd = Self::spawn();
        let ids = rustix::process::geteuid().is_root().then(|| Ids { uid: 64_123, gid: 64_123, groups: vec![] });
        let confine = Confine { ids, best_effort: true };
        authd.say(&ToAuthd::Start(AuthdStart { build: Build::THIS, confine, settings }));
        authd
    }

    /// Starts the program and says nothing.
    pub fn spawn() -> Self {
        let (link, theirs) = monitor_authd::MonitorEnd::pair().unwrap();
        set_socket_timeout(&link, Timeout::Recv, Some(PATIENCE)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_caisson-authd"))
            .stdin(Stdio::from(theirs))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Authd { child, link, workers: 0 }
    }

    /// Starts with alice in the table, and a worker.
    pub fn with_alice(settings: AuthdSettings) -> (Self, Worker) {
        let mut authd = Self::start(settings);
        authd.set_users(&[alice(), slow()]);
        let worker = authd.add_worker();
        (authd, worker)
    }

    pub fn say(&mut self, record: &ToAuthd) {
        self.link.send(record, &[]).unwrap();
    }

    /// The next record.
    pub fn hear(&mut self) -> FromAuthd {
        self.link.recv().expect("a record from authd").record
    }

    /// The next log record of this event.
    pub fn hear_log(&mut self, event: Event) -> String {
        loop {
            match self.hear() {
                FromAuthd::Log(LogRecord { event: got, text, .. }) if got == event => {
                    return String::from_utf8(text.as_bytes().to_vec()).unwrap();
                }
                FromAuthd::Log(_) => {}
                other => panic!("instead of {event:?}: {other:?}"),
            }
        }
    }

    /// Everything but log records that is there now.
    pub fn heard(&mut self) -> Vec<FromAuthd> {
        self.link.set_nonblocking(true);
        let mut all = vec![];
        loop {
            match self.link.recv() {
                Ok(received) if matches!(received.record, FromAuthd::Log(_)) => {}
                Ok(received) => all.push(received.record),
                Err(RecvError::WouldBlock) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        self.link.set_nonblocking(false);
        all
    }

    /// The grants that are there now.
    pub fn grants(&mut self) -> Vec<Grant> {
        let grant = |record| if let FromAuthd::Grant(grant) = record { grant } else { panic!("{record:?}") };
        self.heard().into_iter().map(grant).collect()
    }

    pub fn set_users(&mut self, records: &[UserRecord]) {
        self.set_table(&encode(records));
    }

    pub fn set_table(&mut self, bytes: &[u8]) {
        self.link.send(&ToAuthd::Users, &[sealed(bytes).as_fd()]).unwrap();
    }

    pub fn add_worker(&mut self) -> Worker {
        let id = WorkerId(self.workers);
        self.workers += 1;
        let (link, theirs) = worker_authd::WorkerEnd::pair().unwrap();
        let (keys, keys_theirs) = worker_keys::WorkerEnd::pair().unwrap();
        set_socket_timeout(&link, Timeout::Recv, Some(PATIENCE)).unwrap();
        set_socket_timeout(&keys, Timeout::Recv, Some(PATIENCE)).unwrap();
        self.link.send(&ToAuthd::AddWorker(id), &[theirs.as_fd(), keys_theirs.as_fd()]).unwrap();
        Worker { id, link, keys }
    }

    /// Stops the program; its last words. What it said before is not looked at.
    pub fn stop(mut self) -> (ExitStatus, String) {
        self.heard();
        self.say(&ToAuthd::Stop);
        let words = loop {
            let words = self.hear_log(Event::Process);
            if words.starts_with("cached=") {
                break words;
            }
        };
        (self.child.wait().unwrap(), words)
    }

    /// Waits for the program's end; what it wrote to standard error.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let mut words = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        (status, words)
    }
}

impl Drop for Authd {
    fn drop(&mut self) {
        // Harmless when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A worker.
pub struct Worker {
    pub id: WorkerId,
    pub link: worker_authd::WorkerEnd,
    pub keys: worker_keys::WorkerEnd,
}

impl Worker {
    /// Asks for alice from 192.0.2.1.
    pub fn ask(&mut self, session: u32, password: &[u8]) {
        self.ask_for(session, "alice", password, [192, 0, 2, 1]);
    }

    pub fn ask_for(&mut self, session: u32, user: &str, password: &[u8], source: [u8; 4]) {
        let check = check(session, user, password, source);
        self.link.send(&worker_authd::ToAuthd::Check(check), &[]).unwrap();
    }

    pub fn forget(&mut self, session: u32) {
        self.link.send(&worker_authd::ToAuthd::Forget(SessionId(session)), &[]).unwrap();
    }

    /// The next verdict.
    pub fn hear(&mut self) -> (u32, Outcome) {
        match self.link.recv().expect("a verdict").record {
            worker_authd::FromAuthd::Verdict(Verdict { session, outcome }) => (session.0, outcome),
            other => panic!("no verdict: {other:?}"),
        }
    }

    /// Whether authd has closed the link.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.link.recv(), Err(RecvError::Closed))
    }
}

pub fn check(session: u32, user: &str, password: &[u8], source: [u8; 4]) -> Check {
    let (user, password) = (user_name(user), Secret::new(password.to_vec()));
    assert!(password.is_some());
    let (session, source) = (SessionId(session), source.into());
    Check { session, user, password, source, host: None, secured: false, possession: None }
}

pub fn user_name(name: &str) -> UserName {
    UserName::new(name.as_bytes()).unwrap()
}

pub fn phc(cost: Cost, password: &[u8]) -> String {
    let (mut arena, mut digest) = (Arena::default(), [0; 32]);
    arena.compute(cost, password, b"0123456789abcdef", &mut digest).unwrap();
    Stored::new(cost, b"0123456789abcdef", &digest).unwrap().to_string()
}

pub fn account(name: &str, phc: &str) -> UserRecord {
    let hash = Some(Blob::new(phc.as_bytes()).unwrap());
    let (locked, any_password, hosts, needs_tls, certificate_login, certificates) = Default::default();
    UserRecord { name: user_name(name), hash, locked, any_password, hosts, needs_tls, certificate_login, certificates }
}

/// alice, whose password is [`PASSWORD`].
pub fn alice() -> UserRecord {
    static HASH: LazyLock<String> = LazyLock::new(|| phc(CHEAP, PASSWORD));
    account("alice", &HASH)
}

/// An account that takes long to refuse.
pub fn slow() -> UserRecord {
    let stored = Stored::new(SLOW, &[1; 16], &[2; 32]).unwrap();
    account("slow", &stored.to_string())
}

pub fn encode(records: &[UserRecord]) -> Vec<u8> {
    let mut bytes = vec![];
    for record in records {
        let encoded = postcard::to_stdvec(record).unwrap();
        bytes.extend((encoded.len() as u32).to_le_bytes());
        bytes.extend(encoded);
    }
    bytes
}

fn sealed(bytes: &[u8]) -> OwnedFd {
    let fd = rustix::fs::memfd_create("users", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    let mut rest = bytes;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&fd, rest).unwrap()..];
    }
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    fd
}
