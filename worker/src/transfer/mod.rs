//! The data paths: bytes between a data connection and a descriptor that the broker opened. One path a file, one trait.
//!
//! | path | when |
//! |---|---|
//! | `sendfile` | download as it is |
//! | `splice` | upload as it is |
//! | `pooled` | the same where `sendfile` or `splice` is off, or the kernel refuses it |
//! | `ascii` | TYPE A, both ways |
//! | `job` | no data connection: sums of files, copies |
//!
//! None keeps a buffer from one turn to the next: what a socket did not take is read again, what a socket gave is
//! written at once. So transfers that wait cost no memory, and a worker needs one buffer for all of them.
//! Not here: when a transfer gets its turn (event.rs), what is said about it (ftp/).

mod ascii;
pub mod job;
mod pooled;
mod sendfile;
mod splice;

use std::os::fd::{BorrowedFd, OwnedFd};

use ipc::link::monitor_worker::FtpSettings;
use rustix::io::Errno;

use crate::ftp::data::{How, Move};

/// How far a turn came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The turn's share is used up; there is more to do.
    More,
    /// The socket has nothing, or takes nothing, for now.
    Blocked,
    /// All is done.
    Done,
    /// The data connection failed.
    Peer(Errno),
    /// The file failed.
    File(Errno),
    /// The file became shorter.
    Shrunk,
    /// The kernel cannot do it this way; nothing has moved, or all that has moved is where it belongs.
    Refused,
}

/// A data path with its position.
trait Path {
    /// Moves at most about `share` bytes; adds what moved to `moved`.
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step;
}

/// The two ends of a transfer.
#[derive(Debug, Clone, Copy)]
pub struct Ends<'a> {
    /// The data connection, non-blocking.
    pub data: BorrowedFd<'a>,
    /// The file.
    pub file: BorrowedFd<'a>,
}

/// What all transfers of a worker share, made when it is first needed.
#[derive(Debug)]
pub struct Tools {
    pipe: Option<splice::Pipe>,
    first: Vec<u8>,
    second: Vec<u8>,
    /// Bytes of each buffer.
    chunk: usize,
    sendfile: bool,
    splice: bool,
}

impl Tools {
    /// Obeys `[performance]`.
    pub fn new(settings: &FtpSettings) -> Self {
        let mut tools =
            Tools { pipe: None, first: Vec::new(), second: Vec::new(), chunk: 0, sendfile: true, splice: true };
        tools.obey(settings);
        tools
    }

    /// Takes new settings for transfers from now on.
    pub fn obey(&mut self, settings: &FtpSettings) {
        let half = usize::try_from(settings.buffer_pool_bytes / 3).unwrap_or(usize::MAX);
        let wanted = usize::try_from(settings.transfer_chunk_bytes).unwrap_or(usize::MAX);
        self.chunk = wanted.min(half).clamp(4 << 10, 4 << 20);
        (self.sendfile, self.splice) = (settings.sendfile, settings.splice);
        (self.first, self.second) = (Vec::new(), Vec::new());
    }

    /// One buffer for bytes as they are.
    fn buffer(&mut self) -> &mut [u8] {
        self.first.resize(self.chunk, 0);
        &mut self.first
    }

    /// Two buffers: for bytes as they are, and for twice as many converted ones.
    fn buffers(&mut self) -> (&mut [u8], &mut [u8]) {
        self.first.resize(self.chunk, 0);
        self.second.resize(self.chunk * 2, 0);
        (&mut self.first, &mut self.second)
    }
}

#[derive(Debug)]
enum Way {
    Sendfile(sendfile::Sendfile),
    Splice(splice::Splice),
    PooledOut(pooled::Out),
    PooledIn(pooled::In),
    AsciiOut(ascii::Out),
    AsciiIn(ascii::In),
}

/// A transfer under way: the file and where it stands. The data connection is the session's.
#[derive(Debug)]
pub struct Transfer {
    file: OwnedFd,
    way: Way,
    moved: u64,
    /// Whether bytes come from the client.
    receives: bool,
}

impl Transfer {
    /// Takes the file.
    pub fn new(file: OwnedFd, order: Move, tools: &Tools) -> Self {
        let (way, receives) = match order {
            Move::Send { from, to, text: true } => (Way::AsciiOut(ascii::Out::new(from, to)), false),
            Move::Send { from, to, text: false } if tools.sendfile => {
                (Way::Sendfile(sendfile::Sendfile { from, to }), false)
            }
            Move::Send { from, to, text: false } => (Way::PooledOut(pooled::Out { from, to }), false),
            Move::Receive { text: true } => (Way::AsciiIn(ascii::In::default()), true),
            Move::Receive { text: false } if tools.splice => (Way::Splice(splice::Splice), true),
            Move::Receive { text: false } => (Way::PooledIn(pooled::In), true),
        };
        Transfer { file, way, moved: 0, receives }
    }

    /// Bytes moved over the data connection so far.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Whether bytes come from the client.
    pub fn receives(&self) -> bool {
        self.receives
    }

    /// The file, when all is done.
    pub fn into_file(self) -> OwnedFd {
        self.file
    }

    /// One turn.
    pub fn step(&mut self, data: BorrowedFd<'_>, tools: &mut Tools, share: usize) -> Step {
        loop {
            let ends = Ends { data, file: std::os::fd::AsFd::as_fd(&self.file) };
            let path: &mut dyn Path = match &mut self.way {
                Way::Sendfile(path) => path,
                Way::Splice(path) => path,
                Way::PooledOut(path) => path,
                Way::PooledIn(path) => path,
                Way::AsciiOut(path) => path,
                Way::AsciiIn(path) => path,
            };
            match path.step(ends, tools, share, &mut self.moved) {
                Step::Refused => self.way = self.fallback(),
                step => return step,
            }
        }
    }

    /// The same by copying.
    fn fallback(&self) -> Way {
        match self.way {
            Way::Sendfile(sendfile::Sendfile { from, to }) => Way::PooledOut(pooled::Out { from, to }),
            _ => Way::PooledIn(pooled::In),
        }
    }
}

/// What a step that ends a transfer means to the protocol; `None` while it goes on.
pub fn outcome(step: Step) -> Option<How> {
    match step {
        Step::More | Step::Blocked => None,
        Step::Done => Some(How::Complete),
        Step::Peer(_) => Some(How::Reset),
        Step::File(errno) => Some(How::File(errno.raw_os_error())),
        Step::Refused => Some(How::File(Errno::INVAL.raw_os_error())),
        Step::Shrunk => Some(How::Shrunk),
    }
}
