//! A link whose records wait here while the other end does not read. Nothing blocks and nothing is lost.
//!
//! How many records may wait is the caller's rule (serve.rs).

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use child_ipc::{Channel, Received, Record, RecvError, SendError};

/// One end of a link, non-blocking.
pub struct Outlet<Out, In> {
    channel: Channel<Out, In>,
    waiting: VecDeque<(Out, Option<OwnedFd>)>,
}

impl<Out: Record, In: Record> Outlet<Out, In> {
    /// Makes the end non-blocking.
    pub fn new(mut channel: Channel<Out, In>) -> Self {
        channel.set_nonblocking(true);
        Outlet { channel, waiting: VecDeque::new() }
    }

    /// Takes a descriptor as an end.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self::new(Channel::from_fd(fd)?))
    }

    /// Puts a record behind those that wait. [`Outlet::flush`] sends.
    pub fn push(&mut self, record: Out) {
        self.waiting.push_back((record, None));
    }

    /// The same, with a descriptor.
    pub fn push_with(&mut self, record: Out, fd: OwnedFd) {
        self.waiting.push_back((record, Some(fd)));
    }

    /// How many records wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sends what the link takes; each record that was sent is given to `sent`.
    pub fn flush(&mut self, mut sent: impl FnMut(Out)) -> Result<(), SendError> {
        while let Some((record, fd)) = self.waiting.pop_front() {
            match self.channel.send(&record, fd.as_ref().map(AsFd::as_fd).as_slice()) {
                Ok(()) => sent(record),
                Err(SendError::WouldBlock) => {
                    self.waiting.push_front((record, fd));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next record; `None` when nothing has come.
    pub fn recv(&mut self) -> Result<Option<Received<In>>, RecvError> {
        match self.channel.recv() {
            Ok(received) => Ok(Some(received)),
            Err(RecvError::WouldBlock) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<Out, In> AsFd for Outlet<Out, In> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}
