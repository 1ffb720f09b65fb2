//! Starts a worker and holds the other ends of its links. Every wait is bounded.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt,
    },
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use child_ipc::{
    Channel, Received,
    link::{
        Confine,
        log::{Level, LogRecord},
        monitor_worker::{FromWorker, Granted, Listener, MonitorEnd, PassiveSockets, ToWorker, WorkerStart},
        settings::{FtpSettings, pack},
        worker_authd::{AuthdEnd, Check, FromAuthd, Outcome, ToAuthd, Verdict},
        worker_broker::{Answer, Ask, BrokerEnd, Done, Why},
        worker_keys,
    },
    types::{Blob, BrokerId, Build, Ids, ListenerId, SessionId, WorkerId},
};
use rustix::{fs::OFlags, process::geteuid};

use crate::keys;

/// No wait is longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A worker and everybody it talks to.
pub struct World {
    child: Child,
    pub monitor: MonitorEnd,
    pub authd: AuthdEnd,
    pub address: SocketAddr,
    /// Log lines seen so far.
    pub log: Vec<String>,
}

pub fn settings() -> FtpSettings {
    FtpSettings {
        log_level: Level::Info,
        banner: Blob::cut(b"test"),
        login_timeout_secs: 60,
        idle_timeout_secs: 60,
        data_connect_timeout_secs: 60,
        stall_timeout_secs: 60,
        session_timeout_secs: 0,
        max_login_failures: 3,
        active: true,
        passive_address: None,
        places: Default::default(),
        max_sessions: 100,
        max_sessions_per_address: 0,
        address_prefixes: (32, 64),
        sync_uploads: false,
        sendfile: true,
        splice: true,
        buffer_pool_bytes: 1 << 20,
        transfer_chunk_bytes: 1 << 16,
        tls: None,
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(settings())
    }

    pub fn with(settings: FtpSettings) -> Self {
        let (mut monitor, theirs) = MonitorEnd::pair().unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_caisson-worker"));
        let child = program.env_clear().stdin(Stdio::from(theirs)).stdout(Stdio::null()).spawn().unwrap();
        let nobody = Ids { uid: 65_534, gid: 65_534, groups: Vec::new() };
        let confine = Confine { ids: geteuid().is_root().then_some(nobody), best_effort: false };
        let start = WorkerStart {
            build: Build::THIS,
            confine,
            worker: WorkerId(1),
            settings: pack(&settings).unwrap(),
            ledger: (1, 1),
        };
        let region = rustix::fs::memfd_create("ledger", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&region, 8192).unwrap();
        monitor.send(&ToWorker::Start(start), &[]).unwrap();
        monitor.send(&ToWorker::Region(true), &[region.as_fd()]).unwrap();
        match receive(&mut monitor).record {
            FromWorker::Ready(_) => {}
            other => panic!("Ready was expected: {other:?}"),
        }
        let (listener, address) = listening();
        let named = Listener { id: ListenerId(1), address };
        monitor.send(&ToWorker::Listener(named), &[listener.as_fd()]).unwrap();
        let authd = new_authd(&mut monitor);
        World { child, monitor, authd, address, log: Vec::new() }
    }

    /// authd was started again.
    pub fn replace_authd(&mut self) {
        self.authd = new_authd(&mut self.monitor);
    }

    /// A client that has read nothing yet.
    pub fn raw_client(&self) -> Client {
        Client::new(TcpStream::connect(self.address).unwrap())
    }

    /// A client that has read the greeting.
    pub fn client(&self) -> Client {
        let mut client = self.raw_client();
        assert_eq!(client.reply(), "220 test");
        client
    }

    /// A client that has sent USER and PASS; its check as authd got it.
    pub fn asking(&mut self) -> (Client, Check) {
        let client = self.client();
        self.asking_as(client)
    }

    /// The same of a client that is connected.
    pub fn asking_as(&mut self, mut client: Client) -> (Client, Check) {
        assert_eq!(client.told("USER u"), "331 Password, please.");
        client.send("PASS secret");
        let ToAuthd::Check(check) = receive(&mut self.authd).record else { panic!("a check was expected") };
        (client, check)
    }

    /// A client that is logged in, with a new link to its broker.
    pub fn logged_in(&mut self, broker: BrokerId) -> (Client, SessionId, BrokerEnd) {
        let client = self.client();
        self.logged_in_as(client, broker)
    }

    /// The same of a client that is connected.
    pub fn logged_in_as(&mut self, client: Client, broker: BrokerId) -> (Client, SessionId, BrokerEnd) {
        let (mut client, check) = self.asking_as(client);
        let end = self.grant_with_link(check.session, broker);
        assert_eq!(client.reply(), "230 Logged in.");
        (client, check.session, end)
    }

    /// As [`World::grant_with_link`], of an account with a `tls_required` of its own.
    pub fn grant_that_requires(&mut self, session: SessionId, broker: BrokerId, tls_required: u8) -> BrokerEnd {
        let (end, theirs) = BrokerEnd::pair().unwrap();
        let granted = ToWorker::Granted(Granted { session, broker, tls_required });
        self.monitor.send(&granted, &[theirs.as_fd()]).unwrap();
        end
    }

    pub fn verdict(&mut self, session: SessionId, outcome: Outcome) {
        self.authd.send(&FromAuthd::Verdict(Verdict { session, outcome }), &[]).unwrap();
    }

    pub fn grant(&mut self, session: SessionId, broker: BrokerId) {
        self.monitor.send(&granted(session, broker), &[]).unwrap();
    }

    pub fn grant_with_link(&mut self, session: SessionId, broker: BrokerId) -> BrokerEnd {
        let (end, theirs) = BrokerEnd::pair().unwrap();
        self.monitor.send(&granted(session, broker), &[theirs.as_fd()]).unwrap();
        end
    }

    /// The next record that is no log line.
    pub fn heard(&mut self) -> Received<FromWorker> {
        loop {
            let received = receive(&mut self.monitor);
            match received.record {
                FromWorker::Lines(lines) => self.note(&lines),
                _ => return received,
            }
        }
    }

    /// Takes lines of the log, as they are.
    pub fn note(&mut self, lines: &[LogRecord]) {
        self.log.extend(lines.iter().map(|line| {
            let text = std::str::from_utf8(line.text.as_bytes()).expect("client bytes are escaped");
            format!("{:?} {text}", line.event)
        }));
    }

    /// Answers the next question for passive sockets with so many.
    pub fn give_passive(&mut self, count: usize) {
        let FromWorker::PassivePool(ask) = self.heard().record else { panic!("PassivePool was expected") };
        let sockets: Vec<OwnedFd> = (0..count).map(|_| listening().0).collect();
        let fds: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        let reply = ToWorker::PassivePool(PassiveSockets { listener: ask.listener });
        self.monitor.send(&reply, &fds).unwrap();
    }

    /// Whether these bytes are anywhere in the worker's memory; `None` where one may not look.
    pub fn remembers(&self, bytes: &[u8]) -> Option<bool> {
        let process = format!("/proc/{}", self.child.id());
        let memory = std::fs::File::open(format!("{process}/mem")).ok()?;
        let maps = std::fs::read_to_string(format!("{process}/maps")).ok()?;
        let mut found = false;
        for line in maps.lines().filter(|line| line.contains(" rw")) {
            let (range, _) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
            let mut part = vec![0; usize::try_from(to - from).ok()?];
            let read = memory.read_at(&mut part, from).unwrap_or(0);
            found |= part[..read].windows(bytes.len()).any(|window| window == bytes);
        }
        Some(found)
    }

    /// The monitor dies; how the worker ends.
    pub fn end(mut self) -> ExitStatus {
        let (closed, _) = MonitorEnd::pair().unwrap();
        drop(std::mem::replace(&mut self.monitor, closed));
        self.wait()
    }

    /// How the worker ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status,
                None if Instant::now() > deadline => panic!("the worker did not end"),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next record, in time.
pub fn receive<Out: child_ipc::Record, In: child_ipc::Record>(end: &mut Channel<Out, In>) -> Received<In> {
    try_receive(end).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The next record or the end of the link, in time.
pub fn try_receive<Out: child_ipc::Record, In: child_ipc::Record>(
    end: &mut Channel<Out, In>,
) -> Result<Received<In>, child_ipc::RecvError> {
    wait_readable(end.as_fd());
    end.recv()
}

/// The next question to a broker, answered.
pub fn answer(end: &mut BrokerEnd, outcome: Result<Done, Why>, fds: &[&OwnedFd]) -> Ask {
    let ask = receive(end).record;
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    end.send(&Answer { tag: ask.tag, outcome }, &fds).unwrap();
    ask
}

fn wait_readable(fd: std::os::fd::BorrowedFd<'_>) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(ready, 1, "nothing came in time");
}

fn new_authd(monitor: &mut MonitorEnd) -> AuthdEnd {
    let (authd, theirs) = AuthdEnd::pair().unwrap();
    let (keys, signs) = worker_keys::AuthdEnd::pair().unwrap();
    keys::sign(keys);
    monitor.send(&ToWorker::Authd, &[theirs.as_fd(), signs.as_fd()]).unwrap();
    authd
}

fn listening() -> (OwnedFd, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (listener.into(), address)
}

/// A control connection, under TLS or not.
pub trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

/// An FTP client.
pub struct Client {
    control: TcpStream,
    lines: BufReader<Box<dyn Wire>>,
}

impl Client {
    fn new(control: TcpStream) -> Self {
        control.set_read_timeout(Some(PATIENCE)).unwrap();
        let lines = BufReader::new(Box::new(control.try_clone().unwrap()) as Box<dyn Wire>);
        Client { control, lines }
    }

    /// The same over this wire.
    pub fn over(self, wire: impl FnOnce(TcpStream) -> Box<dyn Wire>) -> Self {
        let lines = BufReader::new(wire(self.control.try_clone().unwrap()));
        Client { control: self.control, lines }
    }

    pub fn send(&mut self, line: &str) {
        self.write(format!("{line}\r\n").as_bytes());
    }

    /// Sends bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        self.lines.get_mut().write_all(bytes).unwrap();
        self.lines.get_mut().flush().unwrap();
    }

    /// The next reply, the last line of it.
    pub fn reply(&mut self) -> String {
        loop {
            let line = self.line().expect("a reply");
            if line.len() > 3 && line.as_bytes()[3] == b' ' && line.as_bytes()[..3].iter().all(u8::is_ascii_digit) {
                return line;
            }
        }
    }

    /// Sends a line and reads its reply.
    pub fn told(&mut self, line: &str) -> String {
        self.send(line);
        self.reply()
    }

    /// Connects to the port of a reply to EPSV.
    pub fn data(&mut self) -> TcpStream {
        let reply = self.told("EPSV");
        self.dial(&reply)
    }

    /// Connects to the port of this reply to EPSV.
    pub fn dial(&self, reply: &str) -> TcpStream {
        let port: u16 = reply.split('|').nth(3).unwrap_or_else(|| panic!("{reply}")).parse().unwrap();
        let data = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        data.set_read_timeout(Some(PATIENCE)).unwrap();
        data
    }

    /// The socket of the control connection.
    pub fn socket(&self) -> &TcpStream {
        &self.control
    }

    /// Vanishes without good-bye.
    pub fn reset(self) {
        rustix::net::sockopt::set_socket_linger(&self.control, Some(Duration::ZERO)).unwrap();
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        self.line().is_none()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A file with these bytes, opened for reading and writing.
pub fn file(bytes: &[u8]) -> OwnedFd {
    let fd = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::io::pwrite(&fd, bytes, 0).unwrap();
    assert!(!rustix::fs::fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK));
    fd
}

/// Of an account that requires nothing.
fn granted(session: SessionId, broker: BrokerId) -> ToWorker {
    ToWorker::Granted(Granted { session, broker, tls_required: 0 })
}
