//! A data connection under TLS: its handshake, and the bytes it holds between two turns.
//!
//! While a client uploads, nothing is sent to it behind the handshake: a client may close without reading, and its
//! kernel would reset the connection over what it has not read, with the end of the upload (RFC 1122 4.2.2.13). So its
//! fresh tickets wait until it has said close_notify.

use std::os::fd::BorrowedFd;

use child_ipc::link::settings::Resumption;
use rustix::{
    io::{Errno, retry_on_intr},
    net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown},
};

use super::{
    Connection, LONGEST_RECORD, Outgoing, Standing,
    connection::{is_unsigned, why},
};
use crate::drain::drain;

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It is done.
    Done,
    /// The socket has nothing, or takes nothing, for now.
    Blocked,
    /// The connection failed.
    Peer(Errno),
    /// There is no TLS with this client; in few words, why.
    Refused(&'static str),
}

/// A data connection under TLS.
#[derive(Debug)]
pub struct Stream {
    connection: Connection,
    /// Bytes of a record that is not whole yet; never longer than a record.
    held: Vec<u8>,
    /// Plain text that came with the end of the handshake; never longer than a record.
    early: Vec<u8>,
    /// Bytes that the socket has not taken yet.
    unsent: Vec<u8>,
    /// So many of them may go now.
    due: usize,
    /// Bytes that the socket has taken.
    sent: u64,
    receives: bool,
    resumption: Resumption,
    /// The handshake is over, and was accepted.
    ready: bool,
}

impl Stream {
    pub(super) fn new(connection: Connection, receives: bool, resumption: Resumption) -> Self {
        let (held, early, unsent) = Default::default();
        Stream { connection, held, early, unsent, due: 0, sent: 0, receives, resumption, ready: false }
    }

    /// Whether the handshake is over.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Bytes that the socket has taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Steps the handshake; by the loop alone (tickets.rs).
    pub fn shake(&mut self, data: BorrowedFd<'_>) -> Flow {
        let mut buffer = [0; LONGEST_RECORD];
        let mut out = Outgoing::default();
        loop {
            match self.flush(data) {
                Flow::Done if self.ready => return Flow::Done,
                Flow::Done => {}
                other => return other,
            }
            let filled = match self.receive(data, &mut buffer) {
                Ok(0) => return Flow::Refused("the client closed it"),
                Ok(filled) => filled,
                Err(Errno::AGAIN) => return Flow::Blocked,
                Err(errno) => return Flow::Peer(errno),
            };
            out.clear();
            let incoming = buffer.get_mut(..filled).unwrap_or_default();
            let (taken, standing) = self.connection.take(incoming, &mut out, false, |plain| {
                self.early.extend_from_slice(plain);
                true
            });
            self.held.extend_from_slice(incoming.get(taken..).unwrap_or_default());
            let before = self.unsent.len();
            self.unsent.extend_from_slice(out.filled());
            self.due = self.unsent.len();
            let flow = match standing {
                Ok(standing) if self.connection.is_handshaking() => match standing {
                    Standing::Ended => Flow::Refused("the client closed it"),
                    Standing::Handshake | Standing::Open => continue,
                },
                Ok(_) => self.accept(before),
                Err(error) => {
                    self.part(data);
                    let stranger = is_unsigned(&error).then(|| self.connection.refusal(self.resumption));
                    Flow::Refused(stranger.flatten().unwrap_or_else(|| why(&error)))
                }
            };
            if flow != Flow::Done {
                finish(data);
                return flow;
            }
        }
    }

    /// The handshake is over: is this the client of the control connection?
    ///
    /// Behind the first `before` of the bytes that wait are its tickets. Anybody else does not get them: they would open
    /// the next data connection of this session.
    fn accept(&mut self, before: usize) -> Flow {
        // No stranger comes so far: there was no signature for it (tickets.rs).
        if let Some(why) = self.connection.refusal(self.resumption) {
            self.unsent.truncate(before);
            return Flow::Refused(why);
        }
        self.ready = true;
        if self.receives && self.connection.is_newest() {
            self.due = before;
        }
        Flow::Done
    }

    /// Receives bytes behind those that are held, which go to the front of `buffer`; tells how many there are in all.
    /// 0: the connection has ended.
    pub fn receive(&mut self, data: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
        let held = self.held.len().min(buffer.len());
        let room = buffer.get_mut(held..).unwrap_or_default();
        if room.is_empty() {
            return Err(Errno::MSGSIZE);
        }
        let got = retry_on_intr(|| recv(data, &mut *room, RecvFlags::empty())).map(|(_, got)| got)?;
        if got == 0 {
            return Ok(0);
        }
        let front = buffer.get_mut(..held).unwrap_or_default();
        front.copy_from_slice(self.held.get(..held).unwrap_or_default());
        self.held.clear();
        Ok(held + got)
    }

    /// Plain text that came with the end of the handshake.
    pub fn take_early(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.early)
    }

    /// Whether the client has said close_notify.
    pub fn is_ended(&self) -> bool {
        self.connection.standing() == Standing::Ended
    }

    /// Plain text of the whole records at the front of `incoming`; the rest is held. `give` gets it, all of it.
    ///
    /// [`Flow::Done`]: close_notify has come. [`Flow::Peer`]: the client broke the protocol, and knows it.
    pub fn open(&mut self, data: BorrowedFd<'_>, incoming: &mut [u8], mut give: impl FnMut(&[u8])) -> Flow {
        let mut out = Outgoing::default();
        let (taken, standing) = self.connection.take(incoming, &mut out, false, |plain| {
            give(plain);
            true
        });
        self.unsent.extend_from_slice(out.filled());
        self.held.extend_from_slice(incoming.get(taken..).unwrap_or_default());
        match standing {
            Ok(Standing::Ended) => Flow::Done,
            Ok(_) => Flow::Blocked,
            Err(_) => {
                self.part(data);
                finish(data);
                Flow::Peer(Errno::PROTO)
            }
        }
    }

    /// Sends `plain`, and close_notify behind it if it is the `last`; `records` is room for the records. What the socket
    /// does not take is kept, and goes first. [`Flow::Blocked`]: all the same, `plain` need not be sent again.
    pub fn send(&mut self, data: BorrowedFd<'_>, plain: &[u8], last: bool, records: &mut Outgoing) -> Flow {
        records.clear();
        records.push(&self.unsent);
        self.unsent.clear();
        if !plain.is_empty() && !self.connection.seal(plain, records) {
            return Flow::Peer(Errno::PROTO);
        }
        if last {
            self.connection.close(records);
        }
        let took = match retry_on_intr(|| send(data, records.filled(), SendFlags::NOSIGNAL)) {
            Ok(took) => took,
            Err(Errno::AGAIN) => 0,
            Err(errno) => return Flow::Peer(errno),
        };
        self.sent += took as u64;
        self.unsent.extend_from_slice(records.filled().get(took..).unwrap_or_default());
        self.due = self.unsent.len();
        if self.unsent.is_empty() { Flow::Done } else { Flow::Blocked }
    }

    /// The client has said close_notify, and so do we, with the tickets that have waited. Whether it reads them is its own
    /// affair, so nothing waits for that.
    pub fn part(&mut self, data: BorrowedFd<'_>) {
        let mut out = Outgoing::default();
        self.connection.close(&mut out);
        self.unsent.extend_from_slice(out.filled());
        self.due = self.unsent.len();
        let _ = self.flush(data);
    }

    /// Bytes that have to go before anything else may.
    pub fn waiting(&self) -> usize {
        self.due
    }

    /// Sends what may go now.
    pub fn flush(&mut self, data: BorrowedFd<'_>) -> Flow {
        while self.due > 0 {
            let bytes = self.unsent.get(..self.due).unwrap_or_default();
            match retry_on_intr(|| send(data, bytes, SendFlags::NOSIGNAL)) {
                Ok(took) => {
                    self.sent += took as u64;
                    self.unsent.drain(..took.min(self.due));
                    self.due = self.due.saturating_sub(took);
                }
                Err(Errno::AGAIN) => return Flow::Blocked,
                Err(errno) => return Flow::Peer(errno),
            }
        }
        Flow::Done
    }
}

/// Ends our side. What the client has sent meanwhile must not make a reset of that.
pub fn finish(data: BorrowedFd<'_>) {
    let _ = shutdown(data, Shutdown::Write);
    drain(data);
}
