//! One link of the worker as the loop uses it: non-blocking, with a bounded queue of what could not be sent yet.
//!
//! Reads from: monitor, authd, brokers (all hostile: `ipc` checks every record). A link that breaks the contract is
//! lost; who loses it decides what that means.

use std::{
    collections::VecDeque,
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use child_ipc::{Breach, Channel, Received, Record, RecvError, SendError};
use mio::{Interest, Registry, Token, unix::SourceFd};

/// Most records that wait. Every session has at most one question open, so only a log flood comes near.
const MOST_WAITING: usize = 16_384;
/// ETOOMANYREFS of sendmsg(2): our user has more descriptors on their way between processes than it may have open.
pub const TOO_MANY_REFS: i32 = rustix::io::Errno::TOOMANYREFS.raw_os_error();

/// Why a link is of no use any more.
#[derive(Debug)]
pub enum Lost {
    /// The other end is closed.
    Closed,
    /// The other end broke the contract.
    Breach(Breach),
    /// Our side failed: what, and why.
    Fault(&'static str, io::Error),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Closed => write!(f, "closed by the other end"),
            Lost::Breach(breach) => write!(f, "{breach}"),
            Lost::Fault(call, error) => write!(f, "{call}: {error}"),
        }
    }
}

/// A link that the loop watches.
#[derive(Debug)]
pub struct Link<Out, In> {
    channel: Channel<Out, In>,
    token: Token,
    waiting: VecDeque<(Out, Option<OwnedFd>)>,
}

impl<Out: Record, In: Record> Link<Out, In> {
    /// Watches a channel under this token.
    pub fn new(mut channel: Channel<Out, In>, token: Token, registry: &Registry) -> io::Result<Self> {
        channel.set_nonblocking(true);
        registry.register(&mut SourceFd(&channel.as_fd().as_raw_fd()), token, Interest::READABLE)?;
        Ok(Link { channel, token, waiting: VecDeque::new() })
    }

    /// Takes a descriptor as a link and watches it.
    pub fn from_fd(fd: OwnedFd, token: Token, registry: &Registry) -> io::Result<Self> {
        Self::new(Channel::from_fd(fd)?, token, registry)
    }

    /// Sends a record at once, or as soon as the link takes it.
    pub fn send(&mut self, record: Out, fd: Option<BorrowedFd<'_>>, registry: &Registry) -> Result<(), Lost> {
        if self.waiting.is_empty() {
            match self.channel.send(&record, fd.as_slice()) {
                Ok(()) => return Ok(()),
                Err(SendError::WouldBlock) => self.watch(Interest::READABLE | Interest::WRITABLE, registry)?,
                Err(error) => return Err(lost(error)),
            }
        }
        if self.waiting.len() >= MOST_WAITING {
            return Err(Lost::Fault("sendmsg", io::ErrorKind::WouldBlock.into()));
        }
        let copy = fd.map(|fd| fd.try_clone_to_owned()).transpose();
        self.waiting.push_back((record, copy.map_err(|error| Lost::Fault("dup", error))?));
        Ok(())
    }

    /// Sends what waits; called when the link takes records again.
    pub fn flush(&mut self, registry: &Registry) -> Result<(), Lost> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        while let Some((record, fd)) = self.waiting.front() {
            match self.channel.send(record, fd.as_ref().map(AsFd::as_fd).as_slice()) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(SendError::WouldBlock) => return Ok(()),
                // Too many descriptors are on their way just now: this one goes with the next event of the link.
                Err(SendError::Io(error)) if error.raw_os_error() == Some(TOO_MANY_REFS) => return Ok(()),
                Err(error) => return Err(lost(error)),
            }
        }
        self.watch(Interest::READABLE, registry)
    }

    /// Whether records wait.
    pub fn is_congested(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next record; `None` when none is there.
    pub fn recv(&mut self) -> Result<Option<Received<In>>, Lost> {
        match self.channel.recv() {
            Ok(received) => Ok(Some(received)),
            Err(RecvError::WouldBlock) => Ok(None),
            Err(RecvError::Closed) => Err(Lost::Closed),
            Err(RecvError::Breach(breach)) => Err(Lost::Breach(breach)),
            Err(RecvError::Io(error)) => Err(Lost::Fault("recvmsg", error)),
        }
    }

    fn watch(&self, interest: Interest, registry: &Registry) -> Result<(), Lost> {
        let fd = self.channel.as_fd().as_raw_fd();
        registry.reregister(&mut SourceFd(&fd), self.token, interest).map_err(|error| Lost::Fault("epoll_ctl", error))
    }
}

fn lost(error: SendError) -> Lost {
    match error {
        SendError::Closed => Lost::Closed,
        SendError::Contract(breach) => Lost::Fault("send", io::Error::other(breach.to_string())),
        SendError::Io(error) => Lost::Fault("sendmsg", error),
        SendError::WouldBlock => Lost::Fault("sendmsg", io::ErrorKind::WouldBlock.into()),
    }
}
