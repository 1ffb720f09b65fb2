//! Many clients at once on one thread: what hundreds of people do, without hundreds of threads in the way.
//!
//! Non-blocking sockets and epoll(7), level-triggered. All clients do the same job, each as fast as it is answered.
//! A client that is answered out of the ordinary, cut off or not done in time is *lost*: it is dropped, counted, and
//! takes no part in later jobs. Data is moved as in client.rs, without a copy of its own.
//! Not here: when a job begins and how long it took (rows/).

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

use crate::client::{LONGEST_REPLY, PIECE, code_of, epsv_port, reply_length};
use crate::error::{Call, Error, Result};

/// Events taken at a time.
const EVENTS: usize = 128;
/// How long a wait may last before the deadline is looked at.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// What every client of a crowd does.
#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    /// Connect, USER, PASS, TYPE I.
    Login {
        /// The control port.
        port: u16,
        /// Who.
        user: &'a str,
        /// The password.
        password: &'a str,
    },
    /// RETR of one file, which must arrive whole.
    Retr {
        /// Its name.
        name: &'a str,
        /// Its bytes.
        len: u64,
    },
    /// STOR of the first bytes of a file, each client under its own [`stored_name`].
    Stor {
        /// Where the bytes come from.
        source: &'a File,
        /// How many.
        len: u64,
    },
    /// QUIT.
    Quit,
}

/// The name under which client `number` stores its file.
pub fn stored_name(number: usize) -> String {
    format!("c{number:04}.bin")
}

/// Some clients, numbered, and what became of them.
#[derive(Debug)]
pub struct Crowd {
    epoll: OwnedFd,
    clients: Vec<Option<Client>>,
    /// Number of the first client.
    first: usize,
    /// How many clients have something left to do.
    busy: usize,
    /// Clients that were lost so far.
    pub lost: usize,
    /// What happened to the first that was lost.
    pub fault: Option<Error>,
    /// Bytes that downloads brought.
    pub received: u64,
    /// Room that a receive may pretend to fill.
    room: Vec<u8>,
}

#[derive(Debug)]
struct Client {
    control: TcpStream,
    /// What was received and not yet taken.
    inbox: Vec<u8>,
    data: Option<OwnedFd>,
    state: State,
    /// Bytes of the transfer that is going on.
    moved: u64,
}

/// What a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// 220.
    Greeting,
    /// 331.
    User,
    /// 230.
    Pass,
    /// 200 to TYPE.
    Type,
    /// Its next job.
    Rest,
    /// 229.
    Passive,
    /// 150.
    Opening,
    /// Data; 226 may be there before the last of it was taken.
    Moving { is_answered: bool },
    /// 226, with all data moved.
    Closing,
    /// 221.
    Leaving,
}

impl Crowd {
    /// `count` clients, the first of them with the number `first`. They begin with [`Job::Login`].
    ///
    /// # Errors
    /// epoll_create(2) fails.
    pub fn new(first: usize, count: usize) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).call(|| "epoll_create".into())?;
        let clients = (0..count).map(|_| None).collect();
        Ok(Self { epoll, clients, first, busy: 0, lost: 0, fault: None, received: 0, room: vec![0; PIECE] })
    }

    /// Has every client do the job once; ends when all have done it or are lost, at the latest at `deadline`.
    ///
    /// # Errors
    /// epoll fails; what happens to a client is no error but its loss.
    pub fn run(&mut self, job: &Job<'_>, deadline: Instant) -> Result<()> {
        self.begin_all(job, usize::MAX);
        self.drive(job, deadline, None)
    }

    /// Logs those in that were lost, `size` at a time, so that a later job is done by all.
    ///
    /// # Errors
    /// epoll fails, or a client is lost again.
    pub fn replace_lost(&mut self, login: &Job<'_>, size: usize, deadline: Instant) -> Result<()> {
        while self.clients.iter().any(Option::is_none) {
            self.fault = None;
            self.begin_all(login, size);
            self.drive(login, deadline, None)?;
            if let Some(fault) = self.fault.take() {
                return Err(Error::Other(format!("client lost, {size} at a time: {fault}")));
            }
        }
        Ok(())
    }

    /// Has every client do the job again and again until `over` is set, and stops in the middle of it then.
    ///
    /// # Errors
    /// As for [`Crowd::run`].
    pub fn repeat(&mut self, job: &Job<'_>, deadline: Instant, over: &AtomicBool) -> Result<()> {
        self.begin_all(job, usize::MAX);
        self.drive(job, deadline, Some(over))
    }

    /// Starts the job for at most so many of the clients that can do it: a login is for those that are not there.
    fn begin_all(&mut self, job: &Job<'_>, most: usize) {
        let is_login = matches!(job, Job::Login { .. });
        let able: Vec<_> =
            (0..self.clients.len()).filter(|&i| self.clients[i].is_none() == is_login).take(most).collect();
        able.into_iter().for_each(|index| self.begin(index, job));
    }

    fn drive(&mut self, job: &Job<'_>, deadline: Instant, over: Option<&AtomicBool>) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while self.busy > 0 && !over.is_some_and(|o| o.load(Ordering::Relaxed)) {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&GLANCE)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(cause) => return Err(cause).call(|| "epoll_wait".into()),
            }
            for event in events.drain(..) {
                let token = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                self.step(token / 2, token % 2 == 1, job, over.is_some());
            }
            if Instant::now() >= deadline {
                self.give_up();
            }
        }
        Ok(())
    }

    /// Starts the job for one client.
    fn begin(&mut self, index: usize, job: &Job<'_>) {
        self.busy += 1;
        let begun = match job {
            Job::Login { port, .. } => {
                Client::connect(&self.epoll, index, *port).map(|c| self.clients[index] = Some(c))
            }
            Job::Retr { .. } | Job::Stor { .. } => self.command(index, "EPSV", State::Passive),
            Job::Quit => self.command(index, "QUIT", State::Leaving),
        };
        if let Err(fault) = begun {
            self.lose(index, fault);
        }
    }

    fn command(&mut self, index: usize, line: &str, next: State) -> Result<()> {
        self.clients[index].as_mut().map_or(Ok(()), |c| c.command(line, next))
    }

    /// One event of a client: a reply, or data that can be moved.
    fn step(&mut self, index: usize, is_data: bool, job: &Job<'_>, again: bool) {
        let number = self.first + index;
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_mut) else { return };
        let was_at_rest = client.state == State::Rest;
        let stepped = if is_data {
            client.move_data(job, &mut self.room).map(|got| self.received += got)
        } else {
            client.take_replies(&self.epoll, index, number, job)
        };
        match (stepped, client.state) {
            // Spoken to or cut off after its job was done: it is not among the busy ones any more.
            (Err(fault), _) if was_at_rest => {
                self.busy += 1;
                self.lose(index, fault);
            }
            (Err(fault), _) => self.lose(index, fault),
            (Ok(()), _) if was_at_rest => {}
            (Ok(()), State::Rest) => {
                self.busy -= 1;
                if matches!(job, Job::Quit) {
                    self.clients[index] = None;
                } else if again {
                    self.begin(index, job);
                }
            }
            (Ok(()), _) => {}
        }
    }

    fn lose(&mut self, index: usize, fault: Error) {
        self.clients[index] = None;
        self.busy -= 1;
        self.lost += 1;
        self.fault.get_or_insert(fault);
    }

    fn give_up(&mut self) {
        for index in 0..self.clients.len() {
            let state = self.clients[index].as_ref().map(|c| c.state);
            if let Some(state) = state.filter(|s| *s != State::Rest) {
                self.lose(index, Error::Late(format!("client {} in {state:?}", self.first + index)));
            }
        }
    }
}

impl Client {
    fn connect(epoll: &OwnedFd, index: usize, port: u16) -> Result<Self> {
        let control = TcpStream::from(dial(port)?);
        control.set_nodelay(true).call(|| "set TCP_NODELAY".into())?;
        watch(epoll, &control, 2 * index, EventFlags::IN)?;
        Ok(Self { control, inbox: Vec::new(), data: None, state: State::Greeting, moved: 0 })
    }

    fn command(&mut self, line: &str, next: State) -> Result<()> {
        self.state = next;
        self.control.write_all(format!("{line}\r\n").as_bytes()).call(|| format!("send {line}"))
    }

    fn take_replies(&mut self, epoll: &OwnedFd, index: usize, number: usize, job: &Job<'_>) -> Result<()> {
        let mut piece = [0_u8; 1024];
        let got = match self.control.read(&mut piece) {
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
            got => got.call(|| format!("reply in {:?}", self.state))?,
        };
        self.inbox.extend_from_slice(&piece[..got]);
        while let Some(len) = reply_length(&self.inbox) {
            let reply: Vec<u8> = self.inbox.drain(..len).collect();
            self.take(epoll, index, number, job, &reply)?;
        }
        if got == 0 || self.inbox.len() > LONGEST_REPLY {
            return Err(Error::Other(format!("client {number} was cut off in {:?}", self.state)));
        }
        Ok(())
    }

    /// One whole reply.
    fn take(&mut self, epoll: &OwnedFd, index: usize, number: usize, job: &Job<'_>, reply: &[u8]) -> Result<()> {
        match (self.state, code_of(reply).unwrap_or(0), job) {
            (State::Greeting, 220, Job::Login { user, .. }) => self.command(&format!("USER {user}"), State::User),
            (State::User, 331, Job::Login { password, .. }) => self.command(&format!("PASS {password}"), State::Pass),
            (State::Pass, 230, _) => self.command("TYPE I", State::Type),
            (State::Passive, 229, _) => {
                let port = epsv_port(&String::from_utf8_lossy(reply)).ok_or_else(|| strange(self.state, reply))?;
                self.data = Some(dial(port)?);
                self.moved = 0;
                let line = match job {
                    Job::Retr { name, .. } => format!("RETR {name}"),
                    _ => format!("STOR {}", stored_name(number)),
                };
                self.command(&line, State::Opening)
            }
            (State::Opening, 150 | 125, _) => {
                self.state = State::Moving { is_answered: false };
                let flags = if matches!(job, Job::Stor { .. }) { EventFlags::OUT } else { EventFlags::IN };
                self.data.as_ref().map_or(Ok(()), |data| watch(epoll, data, 2 * index + 1, flags))
            }
            (State::Moving { .. }, 226 | 250, Job::Retr { .. }) => {
                self.state = State::Moving { is_answered: true };
                Ok(())
            }
            (State::Type, 200, _) | (State::Closing, 226 | 250, _) | (State::Leaving, 221, _) => {
                self.state = State::Rest;
                Ok(())
            }
            _ => Err(strange(self.state, reply)),
        }
    }

    /// Moves a piece; the bytes that a download got.
    fn move_data(&mut self, job: &Job<'_>, room: &mut [u8]) -> Result<u64> {
        let (State::Moving { is_answered }, Some(data)) = (self.state, self.data.as_ref()) else { return Ok(0) };
        let (result, len, what) = match job {
            Job::Stor { source, len } => {
                let mut offset = self.moved;
                let piece = usize::try_from(len - offset).unwrap_or(PIECE).min(PIECE);
                (rustix::fs::sendfile(data, source, Some(&mut offset), piece), *len, "send data")
            }
            Job::Retr { len, .. } => {
                (rustix::net::recv(data, room, RecvFlags::TRUNC).map(|got| got.1), *len, "receive data")
            }
            _ => return Ok(0),
        };
        let moved = match result {
            Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
            moved => moved.call(|| what.into())? as u64,
        };
        self.moved += moved;
        let is_upload = matches!(job, Job::Stor { .. });
        if moved == 0 && self.moved != len {
            return Err(Error::Other(format!("a transfer ended after {} of {len} bytes", self.moved)));
        }
        if moved == 0 || (is_upload && self.moved == len) {
            self.data = None;
            self.state = if is_answered { State::Rest } else { State::Closing };
        }
        Ok(if is_upload { 0 } else { moved })
    }
}

fn strange(state: State, reply: &[u8]) -> Error {
    Error::Reply { sent: format!("{state:?}"), got: String::from_utf8_lossy(reply).into_owned() }
}

fn watch(epoll: &OwnedFd, socket: impl AsFd, token: usize, flags: EventFlags) -> Result<()> {
    epoll::add(epoll, socket, EventData::new_u64(token as u64), flags).call(|| "epoll_ctl".into())
}

/// A socket on its way to a port of the loopback.
fn dial(port: u16) -> Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
        .call(|| "make a socket".into())?;
    match rustix::net::connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(cause) => Err(cause).call(|| format!("connect to port {port}")),
    }
}
