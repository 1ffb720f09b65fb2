//! Stands in for `caisson-worker`: a worker that was taken over, moved by a scenario through a connection to the listener.
//!
//! It climbs a worker's ladder, sandbox and all, and then does what it is told: sends any bytes with any descriptors on
//! any of its links, and tells what came back. It is hostile only if it finds a token beside its program; without
//! one it becomes the honest worker in `honest/`. The words it understands are in `tests/src/puppet.rs`.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use child_ipc::{
    Channel,
    link::{
        Ready,
        monitor_worker::{FromWorker, ToWorker, WorkerEnd},
    },
    types::Blob,
};
use child_sandbox::{Confinement, Enforcement, Rights, Role, Root};
use e2e::puppet::{Word, hex, unhex};
use rustix::{
    cmsg_space,
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        recvmsg, sendmsg,
    },
};

type Done<T> = Result<T, Box<dyn std::error::Error>>;

/// Most descriptors it sends in one record: twice what any record may carry.
const MOST_FDS: usize = 64;

fn main() -> Done<()> {
    let dir = env::current_exe()?.parent().map(PathBuf::from).ok_or("no folder")?;
    let token = dir.join("token");
    let Ok(plan) = fs::read_to_string(&token) else { return honest(&dir) };
    // Whoever removes it has it: two workers that start at once do not share one.
    if fs::remove_file(&token).is_err() {
        return honest(&dir);
    }
    let mut link: WorkerEnd = Channel::from_fd(child_sandbox::take_link()?)?;
    let ToWorker::Start(start) = link.recv().map_err(|e| format!("{e:?}"))?.record else {
        return Err("the first record is not Start".into());
    };
    let mut puppet = Puppet::new()?;
    let enforcement = if start.confine.best_effort { Enforcement::BestEffort } else { Enforcement::Required };
    let ids = start.confine.ids.map(|i| child_sandbox::Ids { uid: i.uid, gid: i.gid, groups: i.groups });
    let order = Confinement { role: Role::WorkerFtp, ids, root: Root::Empty, rights: Rights::NONE, enforcement };
    let _ = child_sandbox::confine(order)?.seal()?;
    for line in plan.lines() {
        puppet.monitor = Some(link.as_fd().try_clone_to_owned()?);
        puppet.obey(line);
    }
    link.send(&FromWorker::Ready(Ready { weaker: Blob::default() }), &[]).map_err(|e| format!("{e:?}"))?;
    let listener = puppet.meet(&mut link)?;
    puppet.monitor = Some(link.as_fd().try_clone_to_owned()?);
    puppet.serve(&listener)
}

fn honest(dir: &std::path::Path) -> Done<()> {
    Err(Command::new(dir.join("honest").join("caisson-worker")).exec().into())
}

/// What it holds and can send.
struct Puppet {
    monitor: Option<OwnedFd>,
    authd: Option<OwnedFd>,
    broker: Option<OwnedFd>,
    control: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    /// Of the ledger, its own first.
    regions: Vec<OwnedFd>,
    /// Came with the last records, newest last.
    got: Vec<OwnedFd>,
    null: OwnedFd,
    pipe: (OwnedFd, OwnedFd),
    unix: (UnixStream, UnixStream),
    /// A listening socket that is not the monitor's.
    own: TcpListener,
}

impl Puppet {
    fn new() -> Done<Self> {
        Ok(Puppet {
            monitor: None,
            authd: None,
            broker: None,
            control: None,
            listener: None,
            regions: Vec::new(),
            got: Vec::new(),
            null: fs::File::open("/dev/null")?.into(),
            pipe: rustix::pipe::pipe()?,
            unix: UnixStream::pair()?,
            own: TcpListener::bind("127.0.0.1:0")?,
        })
    }

    /// Reads the monitor's first records until it has a listener and a link to authd.
    fn meet(&mut self, link: &mut WorkerEnd) -> Done<TcpListener> {
        loop {
            let received = link.recv().map_err(|e| format!("{e:?}"))?;
            let fd = received.fds.into_iter().next();
            match received.record {
                ToWorker::Authd => self.authd = fd,
                ToWorker::Listener(_) => self.listener = fd,
                ToWorker::Region(true) => self.regions.splice(0..0, fd).for_each(drop),
                ToWorker::Region(false) => self.regions.extend(fd),
                _ => {}
            }
            if let (Some(_), Some(listener)) = (&self.authd, &self.listener) {
                return Ok(TcpListener::from(listener.try_clone()?));
            }
        }
    }

    /// Takes one connection after the other and does what their lines say.
    fn serve(&mut self, listener: &TcpListener) -> Done<()> {
        loop {
            let mut wait = [PollFd::new(listener, PollFlags::IN)];
            poll(&mut wait, None)?;
            let Ok((stream, _)) = listener.accept() else { continue };
            self.control = Some(stream.as_fd().try_clone_to_owned()?);
            // The scenario may go away at any time; that is no reason to end.
            let _ = self.converse(stream);
        }
    }

    fn converse(&mut self, mut stream: TcpStream) -> Done<()> {
        stream.write_all(format!("{}\r\n", e2e::puppet::GREETING).as_bytes())?;
        for line in BufReader::new(stream.try_clone()?).lines() {
            let answer = self.obey(&line?);
            stream.write_all(format!("{answer}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Does what a line says; the answer is a line.
    fn obey(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        match (Word::of(words[0]), &words[1..]) {
            (Some(Word::Send), [link, bytes, fds @ ..]) => self.send(link, &unhex(bytes), fds),
            (Some(Word::Receive), [link, millis]) => self.receive(link, millis.parse().unwrap_or(0)),
            (Some(Word::Read), []) => match self.got.last().map(|fd| read_from(fd.as_fd())) {
                Some(Ok(bytes)) => format!("bytes {}", hex(&bytes)),
                Some(Err(errno)) => format!("error {errno}"),
                None => "error nothing held".to_owned(),
            },
            (Some(Word::Write), [bytes]) => told(self.got.last().map(|fd| rustix::io::write(fd, &unhex(bytes)))),
            (Some(Word::Ledger), [which, offset, bytes]) => {
                let region = which.parse().ok().and_then(|which: usize| self.regions.get(which));
                let offset = offset.parse().unwrap_or(0);
                told(region.map(|fd| rustix::io::pwrite(fd, &unhex(bytes), offset)))
            }
            (Some(Word::Cut), []) => told(self.regions.first().map(|fd| rustix::fs::ftruncate(fd, 64).map(|()| 64))),
            _ => format!("error not understood: {line}"),
        }
    }

    fn named(&self, name: &str) -> Option<BorrowedFd<'_>> {
        match name {
            "monitor" => self.monitor.as_ref().map(AsFd::as_fd),
            "authd" => self.authd.as_ref().map(AsFd::as_fd),
            "broker" => self.broker.as_ref().map(AsFd::as_fd),
            "control" => self.control.as_ref().map(AsFd::as_fd),
            "listener" => self.listener.as_ref().map(AsFd::as_fd),
            "got" => self.got.last().map(AsFd::as_fd),
            "null" => Some(self.null.as_fd()),
            "pipe" => Some(self.pipe.0.as_fd()),
            "unix" => Some(self.unix.0.as_fd()),
            "own" => Some(self.own.as_fd()),
            _ => None,
        }
    }

    /// Sends bytes as one record, with descriptors, past every check a channel makes.
    fn send(&self, link: &str, bytes: &[u8], fds: &[&str]) -> String {
        let Some(socket) = self.named(link) else { return format!("error no {link}") };
        let fds: Vec<BorrowedFd<'_>> = fds.iter().filter_map(|name| self.named(name)).collect();
        let mut space = [std::mem::MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return "error too many descriptors".to_owned();
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(socket, &[std::io::IoSlice::new(bytes)], &mut control, flags) {
            Ok(_) => "sent".to_owned(),
            Err(errno) => format!("error {errno}"),
        }
    }

    /// Receives one record, if one comes in time; keeps its descriptors, and a link to a broker by its name.
    fn receive(&mut self, link: &str, millis: u64) -> String {
        let until = Instant::now() + Duration::from_millis(millis);
        let Some(socket) = self.named(link).and_then(|fd| fd.try_clone_to_owned().ok()) else {
            return format!("error no {link}");
        };
        loop {
            match receive_one(socket.as_fd()) {
                Ok((bytes, fds)) if bytes.is_empty() && fds.is_empty() => return "closed".to_owned(),
                Ok((bytes, mut fds)) => {
                    let answer = format!("record {} {}", hex(&bytes), fds.len());
                    let granted = link == "monitor" && e2e::puppet::is_granted(&bytes);
                    if let Some(fd) = fds.pop_if(|_| granted) {
                        self.broker = Some(fd);
                    }
                    self.got.append(&mut fds);
                    return answer;
                }
                Err(Errno::AGAIN) => {}
                Err(errno) => return format!("error {errno}"),
            }
            let left = until.saturating_duration_since(Instant::now());
            let wait = Timespec { tv_sec: 0, tv_nsec: left.min(Duration::from_millis(20)).subsec_nanos().into() };
            let _ = poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&wait));
            if left.is_zero() {
                return "nothing".to_owned();
            }
        }
    }
}

/// How a write went.
fn told(result: Option<Result<usize, Errno>>) -> String {
    match result {
        Some(Ok(count)) => format!("wrote {count}"),
        Some(Err(errno)) => format!("error {errno}"),
        None => "error nothing held".to_owned(),
    }
}

fn receive_one(socket: BorrowedFd<'_>) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    let mut bytes = vec![0; 16_384];
    let mut space = [std::mem::MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(socket, &mut [std::io::IoSliceMut::new(&mut bytes)], &mut control, flags)?;
    let mut fds = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(list) = part {
            fds.extend(list);
        }
    }
    bytes.truncate(message.bytes);
    Ok((bytes, fds))
}

fn read_from(fd: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; 4096];
    let count = rustix::io::pread(fd, &mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}
