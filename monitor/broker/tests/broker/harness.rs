//! A monitor and workers to play with, around a broker and a home in a scratch directory.

use std::{
    fs,
    io::{Read, Seek},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::MetadataExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use child_ipc::{
    RecvError,
    link::{
        Confine,
        monitor_broker::{BrokerStart, FromBroker, MonitorEnd, ToBroker},
        settings::{BrokerSettings, pack},
        worker_broker::{Answer, Ask, Done, Form, Op, Opened, Why, WorkerEnd, WriteMode},
    },
    types::{Blob, Build, Ids, Permissions, UserName, VirtPath, WorkerId},
};
use rustix::{
    fs::Mode,
    net::sockopt::{Timeout, set_socket_timeout},
};

/// Nobody's uid.
pub const UID: u32 = 54_321;

/// How the broker under test is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    /// By root, told to become [`UID`].
    Root,
    /// By an ordinary user.
    User,
}

/// Every way we can start a broker in.
pub fn ways() -> Vec<StartedBy> {
    if rustix::process::geteuid().is_root() { vec![StartedBy::Root, StartedBy::User] } else { vec![StartedBy::User] }
}

/// A scratch directory: `home`, the account's, and `outside`, nobody's business, with a file `secret`.
#[derive(Debug)]
pub struct Scratch {
    top: PathBuf,
}

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("caisson-broker-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let scratch = Scratch { top: std::env::temp_dir().join(name) };
        fs::create_dir(&scratch.top).unwrap();
        for directory in [scratch.home(), scratch.outside()] {
            fs::create_dir(&directory).unwrap();
            give(&directory);
        }
        fs::write(scratch.outside().join("secret"), "SECRET").unwrap();
        give(&scratch.outside().join("secret"));
        scratch
    }

    pub fn home(&self) -> PathBuf {
        self.top.join("home")
    }

    pub fn outside(&self) -> PathBuf {
        self.top.join("outside")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.top).status();
        let _ = fs::remove_dir_all(&self.top);
    }
}

/// Makes the account the owner of a file or link, where it is not already.
pub fn give(path: &Path) {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(UID), Some(UID)).unwrap();
    }
}

/// A running broker, seen from the monitor.
pub struct Broker {
    pub scratch: Scratch,
    pub link: MonitorEnd,
    child: Child,
    next_worker: u32,
}

/// What a broker is started with.
pub struct Setting {
    pub by: StartedBy,
    pub permissions: Permissions,
    pub slots: u16,
    /// File of the time zone of LIST.
    pub listing_zone: Option<&'static str>,
    pub umask: u16,
    pub atomic_uploads: bool,
}

impl Setting {
    pub fn new(by: StartedBy) -> Self {
        Setting { by, permissions: Permissions::ALL, slots: 2, listing_zone: None, umask: 0o022, atomic_uploads: false }
    }
}

impl Broker {
    /// A broker that said it is ready, with an empty home and all permissions.
    pub fn new(by: StartedBy) -> Self {
        Self::with(&Setting::new(by))
    }

    pub fn with(setting: &Setting) -> Self {
        let scratch = Scratch::new();
        let home = scratch.home();
        let mut broker = Self::unready(setting, scratch, &home);
        match broker.next() {
            FromBroker::Ready(_) => broker,
            other => panic!("not ready: {other:?}"),
        }
    }

    /// A broker that was told to start for this home, and has not answered yet.
    pub fn unready(setting: &Setting, scratch: Scratch, home: &Path) -> Self {
        let (mut link, theirs) = MonitorEnd::pair().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_caisson-broker"));
        command.stdin(Stdio::from(theirs));
        let root = rustix::process::geteuid().is_root();
        if root && setting.by == StartedBy::User {
            command.uid(UID).gid(UID);
        }
        let child = command.spawn().unwrap();
        drop(command);
        impatient(&link);
        let ids = (setting.by == StartedBy::Root).then(|| Ids { uid: UID, gid: UID, groups: vec![UID + 1] });
        let settings = BrokerSettings {
            umask: setting.umask,
            atomic_uploads: setting.atomic_uploads,
            listing_zone: setting.listing_zone.map(Into::into),
        };
        let start = BrokerStart {
            build: Build::THIS,
            confine: Confine { ids, best_effort: false },
            account: UserName::new(b"alice").unwrap(),
            permissions: setting.permissions.bits(),
            home: home.to_owned(),
            settings: pack(&settings).unwrap(),
            slots: setting.slots,
        };
        link.send(&ToBroker::Start(start), &[]).unwrap();
        Broker { scratch, link, child, next_worker: 1 }
    }

    /// What the broker says next.
    pub fn next(&mut self) -> FromBroker {
        match self.link.recv() {
            Ok(received) => received.record,
            Err(e) => panic!("broker: {e:?}, {:?}", self.child.try_wait()),
        }
    }

    /// A new worker with a link.
    pub fn worker(&mut self) -> Worker {
        let id = WorkerId(self.next_worker);
        self.next_worker += 1;
        let (link, theirs) = WorkerEnd::pair().unwrap();
        impatient(&link);
        self.link.send(&ToBroker::AddWorker(id), &[theirs.as_fd()]).unwrap();
        Worker { id, link, tag: 0 }
    }

    pub fn drop_worker(&mut self, id: WorkerId) {
        self.link.send(&ToBroker::DropWorker(id), &[]).unwrap();
    }

    pub fn stop(&mut self) -> ExitStatus {
        self.link.send(&ToBroker::Stop, &[]).unwrap();
        self.child.wait().unwrap()
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Descriptors the broker holds; `None` where /proc tells that only to root.
    pub fn descriptors(&self) -> Option<usize> {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).ok().map(Iterator::count)
    }

    /// CPU time of all threads so far; zero where /proc does not tell it to us.
    pub fn cpu(&self) -> Duration {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid())) else { return Duration::ZERO };
        let spent = |task: fs::DirEntry| {
            fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()
        };
        Duration::from_nanos(tasks.flatten().filter_map(spent).sum())
    }

    /// Where a path of the account is on this machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.scratch.home().join(path.trim_start_matches('/'))
    }

    /// A file of the account.
    pub fn file(&self, path: &str, contents: &str) {
        fs::write(self.path(path), contents).unwrap();
        give(&self.path(path));
    }

    /// A directory of the account.
    pub fn directory(&self, path: &str) {
        fs::create_dir(self.path(path)).unwrap();
        give(&self.path(path));
    }

    /// A symbolic link of the account.
    pub fn symlink(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
        give(&self.path(path));
    }

    /// A FIFO of the account.
    pub fn fifo(&self, path: &str) {
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, self.path(path), kind, Mode::from_raw_mode(0o666), 0).unwrap();
        give(&self.path(path));
    }

    pub fn contents(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn mode(&self, path: &str) -> u32 {
        fs::symlink_metadata(self.path(path)).unwrap().mode() & 0o7777
    }

    pub fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.path(path)).is_ok()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A test that waits for an answer that never comes shall fail, not hang.
fn impatient(link: impl AsFd) {
    set_socket_timeout(link, Timeout::Recv, Some(Duration::from_secs(30))).unwrap();
}

/// A worker, as the broker sees one.
pub struct Worker {
    pub id: WorkerId,
    pub link: WorkerEnd,
    tag: u32,
}

impl Worker {
    /// One round trip.
    pub fn ask(&mut self, op: Op) -> Result<(Done, Option<OwnedFd>), Why> {
        self.tag += 1;
        self.link.send(&Ask { tag: self.tag, op: op.clone() }, &[]).unwrap();
        let received = self.link.recv().unwrap_or_else(|e| panic!("{op:?}: {e:?}"));
        let Answer { tag, outcome } = received.record;
        assert_eq!(tag, self.tag);
        outcome.map(|done| (done, received.fds.into_iter().next()))
    }

    /// Done, with nothing to say; or why not.
    pub fn done(&mut self, op: Op) -> Result<(), Why> {
        self.ask(op).map(|(done, _)| assert_eq!(done, Done::Nothing))
    }

    /// What is in a file.
    pub fn read(&mut self, path: &str) -> Result<Vec<u8>, Why> {
        let (done, fd) = self.ask(Op::OpenRead(at(path)))?;
        let mut contents = Vec::new();
        fs::File::from(fd.unwrap()).read_to_end(&mut contents).unwrap();
        assert!(
            matches!(done, Done::Opened(Opened { size, created: false, chosen: None, .. }) if size == contents.len() as u64)
        );
        Ok(contents)
    }

    pub fn write(&mut self, path: &str, mode: WriteMode) -> Result<(Opened, fs::File), Why> {
        let (done, fd) = self.ask(Op::OpenWrite { path: at(path), mode, umask: 0 })?;
        match done {
            Done::Opened(opened) => Ok((opened, fs::File::from(fd.unwrap()))),
            other => panic!("{other:?}"),
        }
    }

    /// The bytes of a listing.
    pub fn list(&mut self, path: &str, form: Form, hidden: bool) -> Result<Vec<u8>, Why> {
        self.list_written(path, "", form, hidden)
    }

    /// The bytes of a listing, of what a client wrote thus.
    pub fn list_written(&mut self, path: &str, written: &str, form: Form, hidden: bool) -> Result<Vec<u8>, Why> {
        let written = Blob::new(written.as_bytes()).unwrap();
        let (done, fd) = self.ask(Op::List { path: at(path), form, hidden, written })?;
        let mut file = fs::File::from(fd.unwrap());
        assert_eq!(file.stream_position().unwrap(), 0);
        let mut lines = Vec::new();
        file.read_to_end(&mut lines).unwrap();
        assert!(matches!(done, Done::Listing { bytes, .. } if bytes == lines.len() as u64), "{done:?}");
        Ok(lines)
    }

    /// Whether the broker has closed the link.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.link.recv(), Err(RecvError::Closed))
    }
}

/// A path as a client writes it.
pub fn at(path: &str) -> VirtPath {
    at_bytes(path.as_bytes())
}

pub fn at_bytes(path: &[u8]) -> VirtPath {
    VirtPath::root().join(path).unwrap()
}
