//! Data connections under TLS, both ways, as they are or in TYPE A.
//!
//! File bytes are sealed into the thread's one buffer of records, and sent from there in one call; only what the socket
//! did not take is the transfer's to keep. Records that come are opened where they lie, and written to the file in large
//! pieces. An upload is whole when its client has said close_notify (RFC 8446 6.1), and not before.

use std::os::fd::BorrowedFd;

use kernels::{crlf_to_lf, crlf_to_lf as from_net, lf_to_crlf, lf_to_crlf as to_net};
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};

use super::{
    Ends, Path, Step, Tools, Transfer, Way,
    pooled::{read_at, write_all},
};
use crate::{
    drain::drain,
    tls::{Stream, stream::Flow},
};

/// So little that waits is sent with what comes next.
const LITTLE: usize = 4 << 10;

/// The bytes `from` to `to` of the file; `from` moves on.
#[derive(Debug)]
pub(super) struct Out {
    pub from: u64,
    pub to: u64,
    /// TYPE A, and the state of it.
    pub text: Option<lf_to_crlf::State>,
    pub stream: Box<Stream>,
    /// close_notify is among what is sent or waits.
    closed: bool,
}

impl Out {
    pub(super) fn new(from: u64, to: u64, text: bool, stream: Box<Stream>) -> Self {
        Out { from, to, text: text.then(Default::default), stream, closed: false }
    }
}

impl Path for Out {
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step {
        let (source, converted, records) = tools.buffers_and_records();
        let mut left = share;
        loop {
            if self.closed || self.stream.waiting() > LITTLE {
                match self.stream.flush(ends.data) {
                    Flow::Done => {}
                    flow => return step(flow),
                }
            }
            if self.closed {
                drain(ends.data);
                return Step::Done;
            }
            if left == 0 {
                return Step::More;
            }
            let rest = super::at_hand(self.from, self.to, ends);
            if rest == 0 && self.from < self.to {
                return Step::Cold;
            }
            let room = rest.min(source.len());
            let got = match read_at(ends.file, source.get_mut(..room).unwrap_or_default(), self.from) {
                Ok(0) if self.from < self.to => return Step::Shrunk,
                Ok(got) => got,
                Err(errno) => return Step::File(errno),
            };
            let source = source.get(..got).unwrap_or_default();
            let plain = match &mut self.text {
                None => source,
                Some(state) => {
                    let done = to_net(source, converted, state);
                    converted.get(..done.written).unwrap_or_default()
                }
            };
            self.from += got as u64;
            self.closed = self.from >= self.to;
            *moved += plain.len() as u64;
            left = left.saturating_sub(plain.len());
            match self.stream.send(ends.data, plain, self.closed, records) {
                Flow::Done => {}
                flow => return step(flow),
            }
        }
    }
}

/// To where the descriptor stands.
#[derive(Debug)]
pub(super) struct In {
    /// TYPE A, and the state of it.
    pub text: Option<crlf_to_lf::State>,
    pub stream: Box<Stream>,
}

impl In {
    pub(super) fn new(text: bool, stream: Box<Stream>) -> Self {
        In { text: text.then(Default::default), stream }
    }

    /// Writes plain text to the file.
    fn write(text: &mut Option<crlf_to_lf::State>, ends: Ends<'_>, plain: &[u8], room: &mut [u8]) -> Result<(), Errno> {
        match text {
            None => write_all(ends.file, plain),
            Some(state) => {
                let done = from_net(plain, room, state);
                write_all(ends.file, room.get(..done.written).unwrap_or_default())
            }
        }
    }

    /// close_notify has come.
    fn finish(&mut self, ends: Ends<'_>) -> Step {
        let last = self.text.as_mut().map(crlf_to_lf::State::finish);
        let written = last.map_or(Ok(()), |last| write_all(ends.file, last.as_slice()));
        self.stream.part(ends.data);
        written.map_or_else(Step::File, |()| Step::Done)
    }
}

impl Path for In {
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step {
        let (pieces, converted, records) = tools.buffers_and_records();
        let incoming = records.room(pieces.len() + crate::tls::LONGEST_RECORD);
        let mut left = share;
        let early = self.stream.take_early();
        *moved += early.len() as u64;
        if let Err(errno) =
            early.chunks(pieces.len()).try_for_each(|piece| Self::write(&mut self.text, ends, piece, converted))
        {
            return Step::File(errno);
        }
        while left > 0 {
            if self.stream.is_ended() {
                return self.finish(ends);
            }
            let filled = match self.stream.receive(ends.data, incoming) {
                Ok(0) => return Step::Cut,
                Ok(filled) => filled,
                Err(Errno::AGAIN) => return Step::Blocked,
                Err(errno) => return Step::Peer(errno),
            };
            left = left.saturating_sub(filled);
            let (mut gathered, mut failed) = (0, None);
            let text = &mut self.text;
            let flow = self.stream.open(ends.data, incoming.get_mut(..filled).unwrap_or_default(), |plain| {
                *moved += plain.len() as u64;
                for piece in plain.chunks(pieces.len()) {
                    if gathered + piece.len() > pieces.len() {
                        let full = pieces.get(..gathered).unwrap_or_default();
                        failed = failed.or(Self::write(text, ends, full, converted).err());
                        gathered = 0;
                    }
                    if let Some(room) = pieces.get_mut(gathered..gathered + piece.len()) {
                        room.copy_from_slice(piece);
                        gathered += piece.len();
                    }
                }
            });
            failed = failed.or(Self::write(text, ends, pieces.get(..gathered).unwrap_or_default(), converted).err());
            match (failed, flow) {
                (Some(errno), _) => return Step::File(errno),
                (None, Flow::Peer(errno)) => return Step::Peer(errno),
                (None, _) => {}
            }
        }
        Step::More
    }
}

impl Transfer {
    /// Whether nothing but the end was to be sent. A client that knows the file to be empty (curl) closes without reading that,
    /// which its kernel makes a reset of; it has lost nothing.
    pub fn owes_nothing(&self) -> bool {
        matches!(&self.way, Way::SecuredOut(out) if out.stream.is_ready() && out.from >= out.to) && self.moved == 0
    }
}

/// What became of a handshake or of bytes on their way.
pub(super) fn step(flow: Flow) -> Step {
    match flow {
        Flow::Done | Flow::Blocked => Step::Blocked,
        Flow::Peer(errno) => Step::Peer(errno),
        Flow::Refused(why) => Step::Unsecured(why),
    }
}

/// Whether the first bytes are those of a client's handshake (RFC 8446 5.1, 4): a file that begins so is not what anybody
/// would upload in clear beside TLS.
pub(super) fn begins_with_hello(data: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut first = [0; 6];
    let (_, got) = rustix::io::retry_on_intr(|| recv(data, &mut first, RecvFlags::PEEK))?;
    Ok(got == first.len() && matches!(first, [22, 3, 0..=4, _, _, 1]))
}
