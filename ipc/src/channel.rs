//! One record out, one record in, with its descriptors: the only sendmsg and recvmsg of the links.
//!
//! `SOCK_SEQPACKET` keeps record borders, so descriptors stay with the record they were sent with; a byte stream
//! would glue records together and let descriptors change owner.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{marker::PhantomData, mem::MaybeUninit};

use rustix::io::Errno;
use rustix::net::{AddressFamily, ReturnFlags, SocketFlags, SocketType, socketpair};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use zeroize::Zeroize;

use crate::call::Record;
use crate::wire::{self, Breach};

/// Most descriptors any record carries.
pub const MAX_FDS: usize = 32;

/// One end of a link: sends `Out`, receives `In`. Blocks unless [`Channel::set_nonblocking`] was called.
#[derive(Debug)]
pub struct Channel<Out, In> {
    socket: OwnedFd,
    buffer: Vec<u8>,
    waits: bool,
    types: PhantomData<fn(Out) -> In>,
}

/// A record with the descriptors that came with it; their count has been checked.
#[derive(Debug)]
pub struct Received<R> {
    /// The record.
    pub record: R,
    /// Its descriptors, close-on-exec.
    pub fds: Vec<OwnedFd>,
}

/// Why nothing was received.
#[derive(Debug)]
pub enum RecvError {
    /// The other end is closed.
    Closed,
    /// Nothing is waiting (non-blocking ends only).
    WouldBlock,
    /// The other end broke the contract.
    Breach(Breach),
    /// The system call failed.
    Io(io::Error),
}

/// Why a record was not sent.
#[derive(Debug)]
pub enum SendError {
    /// The other end is closed.
    Closed,
    /// The queue is full (non-blocking ends only): keep the record and wait until the link is writable.
    WouldBlock,
    /// The record breaks its own contract: a fault on our side.
    Contract(Breach),
    /// The system call failed.
    Io(io::Error),
}

impl<Out: Record, In: Record> Channel<Out, In> {
    /// Makes a link: this end typed, the other end ready to be handed to another process.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self::wrap(ours), theirs))
    }

    /// Takes a descriptor as one end of a link.
    ///
    /// Fails with `InvalidInput` when it is not a `SOCK_SEQPACKET` socket of `AF_UNIX`.
    pub fn from_fd(socket: OwnedFd) -> io::Result<Self> {
        let kind = rustix::net::sockopt::socket_type(&socket)?;
        let family = rustix::net::sockopt::socket_domain(&socket)?;
        if kind == SocketType::SEQPACKET && family == AddressFamily::UNIX {
            Ok(Self::wrap(socket))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "not a SOCK_SEQPACKET socket of AF_UNIX"))
        }
    }

    fn wrap(socket: OwnedFd) -> Self {
        Channel { socket, buffer: Vec::new(), waits: true, types: PhantomData }
    }

    /// Makes this end non-blocking (or blocking again); the other end is not concerned.
    ///
    /// By `MSG_DONTWAIT` on each call, not by `O_NONBLOCK`: so no process has to be allowed to change that flag, which
    /// on a listening socket all workers share would stop the others.
    pub fn set_nonblocking(&mut self, on: bool) {
        self.waits = !on;
    }

    /// Sends one record with its descriptors, whole or not at all.
    pub fn send(&mut self, record: &Out, fds: &[BorrowedFd<'_>]) -> Result<(), SendError> {
        wire::check_descriptors(record, fds.len()).map_err(SendError::Contract)?;
        self.buffer.resize(Out::CAP.max(In::CAP), 0);
        let sent = match wire::encode(record, &mut self.buffer[..Out::CAP]) {
            Some(bytes) => transmit(self.socket.as_fd(), bytes, fds, self.waits),
            None => Err(SendError::Contract(Breach::TooLong(Out::CAP))),
        };
        self.wipe::<Out>();
        sent
    }

    /// Receives one record.
    pub fn recv(&mut self) -> Result<Received<In>, RecvError> {
        // One byte more than the cap, so that a record of exactly the cap is told from a longer one even where
        // MSG_TRUNC is not reported.
        self.buffer.resize(Out::CAP.max(In::CAP) + 1, 0);
        let received =
            receive(self.socket.as_fd(), &mut self.buffer[..=In::CAP], self.waits).and_then(|(length, fds)| {
                let record: In = wire::decode(&self.buffer[..length]).map_err(RecvError::Breach)?;
                wire::check_descriptors(&record, fds.len()).map_err(RecvError::Breach)?;
                Ok(Received { record, fds })
            });
        self.wipe::<In>();
        received
    }

    fn wipe<R: Record>(&mut self) {
        if R::WIPE {
            self.buffer.as_mut_slice().zeroize();
        }
    }
}

impl<Out, In> AsFd for Channel<Out, In> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn transmit(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>], waits: bool) -> Result<(), SendError> {
    let flags = if waits { SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL | SendFlags::DONTWAIT };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(SendError::Contract(Breach::DescriptorsCut));
    }
    loop {
        return match sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags) {
            Ok(_) => Ok(()),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Err(SendError::WouldBlock),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(SendError::Closed),
            Err(errno) => Err(SendError::Io(errno.into())),
        };
    }
}

fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], waits: bool) -> Result<(usize, Vec<OwnedFd>), RecvError> {
    let flags = if waits { RecvFlags::CMSG_CLOEXEC } else { RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let cap = buffer.len() - 1;
    let message = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
            Ok(message) => break message,
            // ECONNRESET, told once: the other end was closed before it had read all. What it said itself is still there, its last
            // word perhaps, and then the end.
            Err(Errno::INTR | Errno::CONNRESET) => continue,
            Err(Errno::AGAIN) => return Err(RecvError::WouldBlock),
            Err(errno) => return Err(RecvError::Io(errno.into())),
        }
    };
    // Collected before anything is refused: what is dropped here is closed, never leaked.
    let mut fds = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(list) = part {
            fds.extend(list);
        }
    }
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(RecvError::Breach(Breach::DescriptorsCut));
    }
    if message.flags.contains(ReturnFlags::TRUNC) || message.bytes > cap {
        return Err(RecvError::Breach(Breach::TooLong(cap)));
    }
    if message.bytes == 0 {
        return Err(RecvError::Closed);
    }
    Ok((message.bytes, fds))
}
