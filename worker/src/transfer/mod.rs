//! The data paths: bytes between a data connection and a descriptor that the broker opened. One path a file, one trait.
//!
//! | path | when |
//! |---|---|
//! | `sendfile` | download as it is |
//! | `splice` | upload as it is |
//! | `pooled` | the same where `sendfile` or `splice` is off, or the kernel refuses it |
//! | `ascii` | TYPE A, both ways |
//! | `secured` | under TLS, both ways |
//! | `job` | no data connection: sums of files, copies |
//!
//! None keeps a buffer from one turn to the next: what a socket did not take is read again, what a socket gave is
//! written at once (`secured` keeps a record, and what it has sealed). So transfers that wait cost no memory, and a worker needs one buffer for all of them, and each of its
//! helper threads another.
//!
//! The loop's turns do not wait for disks. What is read is asked for first, byte by byte here and there, without waiting
//! (`RWF_NOWAIT`, preadv2(2)); what is written goes into the page cache, a little of it by the loop while that is quick.
//! Everything else is [`Step::Cold`]: a helper thread (helpers.rs) takes the next turn, by the same path.
//! Not here: when a transfer gets its turn (event.rs), what is said about it (ftp/).

mod ascii;
pub mod job;
mod pooled;
mod secured;
mod sendfile;
mod splice;

use std::{
    io::IoSliceMut,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use child_ipc::{
    link::{
        settings::FtpSettings,
        worker_broker::{Medium, Storage},
    },
    types::BrokerId,
};
use rustix::{
    fs::{Advice, fadvise, ftruncate},
    io::{Errno, ReadWriteFlags, preadv2},
};

use crate::{
    ftp::data::{How, Move},
    helpers::{Files, Lane, On, THREADS},
    tls::{Outgoing, Stream, stream::Flow},
};

/// Bytes of an upload to a disk that the loop takes itself, about: small files need no helper.
const INLINE: usize = 64 << 10;
/// The loop asks whether bytes are in the page cache once for so many.
const PROBE: u64 = 256 << 10;
/// It asks so far ahead: what it found may be gone again later.
const AHEAD: u64 = 1 << 20;
/// Bytes that a helper moves in one turn, where a disk of this machine is slow, and where anything may be.
const HELPER_SHARE: (usize, usize) = (1 << 20, 256 << 10);
/// Between two pieces of so many bytes, a helper sees whether they are still wanted.
const PIECE: usize = 128 << 10;
/// A small write that took the loop longer than this was held up by the kernel: dirty pages are too many.
const HELD_UP: Duration = Duration::from_millis(5);
/// For so long helpers take all writes to disks then.
const ROUGH: Duration = Duration::from_secs(10);

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
    /// The data connection ended without close_notify.
    Cut,
    /// There is no TLS with this client; in few words, why.
    Unsecured(&'static str),
    /// The file failed.
    File(Errno),
    /// The file became shorter.
    Shrunk,
    /// What comes next may have to wait for a disk: a helper is to go on.
    Cold,
    /// The kernel cannot do it this way; nothing has moved, or all that has moved is where it belongs.
    Refused,
}

/// A data path with its position.
trait Path {
    /// Moves at most about `share` bytes; adds what moved to `moved`. [`Step::Cold`] at `ends.until`.
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step;
}

/// The two ends of a transfer.
#[derive(Debug, Clone, Copy)]
pub struct Ends<'a> {
    /// The data connection, non-blocking.
    pub data: BorrowedFd<'a>,
    /// The file.
    pub file: BorrowedFd<'a>,
    /// The bytes in front of this offset can be read without waiting.
    pub until: u64,
}

/// What all transfers of a worker share, made when it is first needed.
#[derive(Debug)]
pub struct Tools {
    pipe: Option<splice::Pipe>,
    first: Vec<u8>,
    second: Vec<u8>,
    records: Outgoing,
    /// Bytes of each buffer.
    chunk: usize,
    sendfile: bool,
    splice: bool,
    /// Until then, the loop leaves all writes to disks to helpers.
    rough: Option<Instant>,
}

impl Tools {
    /// Obeys `[performance]`.
    pub fn new(settings: &FtpSettings) -> Self {
        let (first, second, records) = Default::default();
        let mut tools =
            Tools { pipe: None, first, second, records, chunk: 0, sendfile: true, splice: true, rough: None };
        tools.obey(settings);
        tools
    }

    /// Takes new settings for transfers from now on.
    pub fn obey(&mut self, settings: &FtpSettings) {
        let threads = u64::try_from(1 + THREADS).unwrap_or(u64::MAX);
        // Under TLS, what is converted needs room for its records as well.
        let chunks = if settings.tls.is_some() { 6 } else { 3 };
        let most = usize::try_from(settings.buffer_pool_bytes / chunks / threads).unwrap_or(usize::MAX);
        let wanted = usize::try_from(settings.transfer_chunk_bytes).unwrap_or(usize::MAX);
        self.chunk = wanted.min(most).clamp(4 << 10, 4 << 20);
        (self.sendfile, self.splice) = (settings.sendfile, settings.splice);
        (self.first, self.second, self.records) = Default::default();
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

    /// The same, and one for records.
    fn buffers_and_records(&mut self) -> (&mut [u8], &mut [u8], &mut Outgoing) {
        self.buffers();
        self.records.clear();
        (&mut self.first, &mut self.second, &mut self.records)
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
    SecuredOut(secured::Out),
    SecuredIn(secured::In),
}

/// A transfer under way: the file and where it stands. The data connection is the session's.
#[derive(Debug)]
pub struct Transfer {
    file: OwnedFd,
    way: Way,
    moved: u64,
    /// Whether bytes come from the client.
    receives: bool,
    storage: Storage,
    /// Who opened the file.
    broker: BrokerId,
    /// A helper is to see it to the disk.
    sync: bool,
    /// Where the file is to be cut before anything is written.
    cut: Option<u64>,
    /// The client may believe that this connection is under TLS.
    wary: bool,
    /// All bytes have been moved.
    ended: bool,
}

impl Transfer {
    /// Takes the file, which was opened by this broker; under TLS, the `stream` of the data connection that is to come.
    pub fn new(file: OwnedFd, order: Move, stream: Option<Box<Stream>>, broker: BrokerId, tools: &Tools) -> Self {
        let (way, receives, storage, sync, cut) = match order {
            Move::Send { from, to, text, storage } => {
                let way = match (stream, text, tools.sendfile) {
                    (Some(stream), ..) => Way::SecuredOut(secured::Out::new(from, to, text, stream)),
                    (None, true, _) => Way::AsciiOut(ascii::Out::new(from, to)),
                    (None, false, true) => Way::Sendfile(sendfile::Sendfile { from, to }),
                    (None, false, false) => Way::PooledOut(pooled::Out { from, to }),
                };
                (way, false, storage, false, None)
            }
            Move::Receive { text, storage, sync, cut } => {
                let way = match (stream, text, tools.splice) {
                    (Some(stream), ..) => Way::SecuredIn(secured::In::new(text, stream)),
                    (None, true, _) => Way::AsciiIn(ascii::In::default()),
                    (None, false, true) => Way::Splice(splice::Splice),
                    (None, false, false) => Way::PooledIn(pooled::In),
                };
                (way, true, storage, sync, cut)
            }
        };
        Transfer { file, way, moved: 0, receives, storage, broker, sync, cut, wary: false, ended: false }
    }

    /// The client has TLS on its control connection and not on this one: a handshake is no file.
    #[must_use]
    pub fn wary(mut self, wary: bool) -> Self {
        self.wary = wary && self.receives && self.stream().is_none();
        self
    }

    /// Bytes moved over the data connection so far.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Whether bytes come from the client.
    pub fn receives(&self) -> bool {
        self.receives
    }

    /// Grows whenever the data connection has taken or given something.
    pub fn progress(&self) -> u64 {
        self.moved + self.way.stream().map_or(0, Stream::sent)
    }

    /// Under TLS, the data connection.
    pub fn stream(&self) -> Option<&Stream> {
        self.way.stream()
    }

    /// The file, when all is done.
    pub fn into_file(self) -> OwnedFd {
        self.file
    }

    /// The file, for a helper to close.
    pub fn into_files(self) -> Files {
        Files { lane: self.lane(), files: vec![self.file] }
    }

    /// Where its turns wait for a helper.
    pub fn lane(&self) -> Lane {
        Lane { broker: self.broker, on: On::One(self.storage.device) }
    }

    /// Whether closing the file may take its time.
    pub fn closes_slowly(&self) -> bool {
        match self.storage.medium {
            Medium::Memory => false,
            Medium::Disk { .. } => self.receives && self.moved > INLINE as u64,
            Medium::Remote => true,
        }
    }

    /// One turn of the loop, which does not wait for a disk.
    pub fn step(&mut self, data: BorrowedFd<'_>, tools: &mut Tools, share: usize) -> Step {
        if let Some(stream) = self.way.stream_mut().filter(|stream| !stream.is_ready()) {
            match stream.shake(data) {
                Flow::Done => {}
                flow => return secured::step(flow),
            }
        }
        if self.wary {
            match secured::begins_with_hello(data) {
                Ok(true) => return Step::Unsecured("the client speaks TLS, though PROT C is in force"),
                Ok(false) => self.wary = false,
                Err(Errno::AGAIN) => return Step::Blocked,
                Err(errno) => return Step::Peer(errno),
            }
        }
        if self.cut.is_some() && self.storage.medium != Medium::Memory {
            return Step::Cold;
        }
        if let Err(errno) = self.cut() {
            return Step::File(errno);
        }
        match self.step_at_hand(data, tools, share) {
            Step::Done if self.sync => {
                self.ended = true;
                Step::Cold
            }
            step => step,
        }
    }

    /// Cuts the file, if that is still to be done.
    fn cut(&mut self) -> Result<(), Errno> {
        match self.cut.take() {
            None => Ok(()),
            Some(length) => rustix::io::retry_on_intr(|| ftruncate(&self.file, length)),
        }
    }

    fn step_at_hand(&mut self, data: BorrowedFd<'_>, tools: &mut Tools, share: usize) -> Step {
        let mut left = share;
        while left > 0 {
            let before = self.moved;
            let step = match (self.storage.medium, self.receives) {
                (Medium::Memory, _) => return self.walk(data, tools, left, u64::MAX),
                (Medium::Remote, _) => return Step::Cold,
                (Medium::Disk { .. }, true) => return self.take_little(data, tools, left),
                (Medium::Disk { cached }, false) => match self.at_hand(cached) {
                    Some(until) => self.walk(data, tools, left, until),
                    None => return Step::Cold,
                },
            };
            // What is behind may be at hand as well.
            if step != Step::Cold || self.moved == before {
                return step;
            }
            left = left.saturating_sub(usize::try_from(self.moved - before).unwrap_or(usize::MAX));
        }
        Step::More
    }

    /// One turn of a helper, which may wait.
    pub fn step_of_helper(&mut self, data: BorrowedFd<'_>, tools: &mut Tools, given_up: &AtomicBool) -> Step {
        if given_up.load(Ordering::Relaxed) {
            return Step::More;
        }
        if let Err(errno) = self.cut() {
            return Step::File(errno);
        }
        if !self.ended {
            match self.step_waiting(data, tools, given_up) {
                Step::Done => self.ended = true,
                step => return step,
            }
        }
        match self.sync.then(|| rustix::io::retry_on_intr(|| rustix::fs::fsync(&self.file))) {
            None | Some(Ok(())) => Step::Done,
            Some(Err(errno)) => Step::File(errno),
        }
    }

    /// In pieces, for whoever gives up must not wait long.
    fn step_waiting(&mut self, data: BorrowedFd<'_>, tools: &mut Tools, given_up: &AtomicBool) -> Step {
        let mut left = match self.storage.medium {
            Medium::Memory | Medium::Disk { .. } => HELPER_SHARE.0,
            Medium::Remote => HELPER_SHARE.1,
        };
        if let (Medium::Disk { .. }, Some((from, _))) = (self.storage.medium, self.way.reads()) {
            // So that the disk has all of it to do at once. It is a hint.
            let _ = fadvise(&self.file, from, std::num::NonZeroU64::new(2 * AHEAD), Advice::WillNeed);
        }
        while left > 0 && !given_up.load(Ordering::Relaxed) {
            let before = self.moved;
            match self.walk(data, tools, left.min(PIECE), u64::MAX) {
                // Under TLS, a piece may have been records that say nothing.
                Step::More => {
                    let moved = usize::try_from(self.moved - before).unwrap_or(usize::MAX);
                    left = left.saturating_sub(moved.max(PIECE));
                }
                step => return step,
            }
        }
        Step::More
    }

    /// The beginning of an upload to a disk, into the page cache; [`Step::Cold`] when that was enough, or when writers are
    /// held up these days.
    fn take_little(&mut self, data: BorrowedFd<'_>, tools: &mut Tools, share: usize) -> Step {
        let began = Instant::now();
        let left = INLINE.saturating_sub(usize::try_from(self.moved).unwrap_or(usize::MAX));
        if left == 0 || tools.rough.is_some_and(|until| began < until) {
            return Step::Cold;
        }
        let step = self.walk(data, tools, share.min(left), u64::MAX);
        if began.elapsed() > HELD_UP {
            tools.rough = Some(began + ROUGH);
        }
        if step == Step::More { Step::Cold } else { step }
    }

    /// How far the file can be read without waiting; `None`: not at all. `cached` was the broker's word.
    fn at_hand(&mut self, cached: u64) -> Option<u64> {
        let (from, to) = self.way.reads()?;
        let mut until = if self.moved == 0 { cached } else { 0 };
        // That word was about the moment the file was opened.
        self.storage.medium = Medium::Disk { cached: 0 };
        until = until.max(from);
        while until < to && until < from.saturating_add(AHEAD) {
            match rustix::io::retry_on_intr(|| {
                preadv2(&self.file, &mut [IoSliceMut::new(&mut [0])], until, ReadWriteFlags::NOWAIT)
            }) {
                // At the end, which has come nearer, there is nothing to wait for.
                Ok(_) => until = (until / PROBE + 1) * PROBE,
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.storage.medium = Medium::Remote;
                    return None;
                }
            }
        }
        (until > from || from >= to).then_some(until)
    }

    /// Along the path.
    fn walk(&mut self, data: BorrowedFd<'_>, tools: &mut Tools, share: usize, until: u64) -> Step {
        loop {
            let ends = Ends { data, file: self.file.as_fd(), until };
            let path: &mut dyn Path = match &mut self.way {
                Way::Sendfile(path) => path,
                Way::Splice(path) => path,
                Way::PooledOut(path) => path,
                Way::PooledIn(path) => path,
                Way::AsciiOut(path) => path,
                Way::AsciiIn(path) => path,
                Way::SecuredOut(path) => path,
                Way::SecuredIn(path) => path,
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

impl Way {
    /// The bytes of the file that are still to be read.
    fn reads(&self) -> Option<(u64, u64)> {
        match self {
            Way::Sendfile(path) => Some((path.from, path.to)),
            Way::PooledOut(path) => Some((path.from, path.to)),
            Way::AsciiOut(path) => Some((path.from, path.to)),
            Way::SecuredOut(path) => Some((path.from, path.to)),
            Way::Splice(_) | Way::PooledIn(_) | Way::AsciiIn(_) | Way::SecuredIn(_) => None,
        }
    }

    fn stream(&self) -> Option<&Stream> {
        match self {
            Way::SecuredOut(path) => Some(&path.stream),
            Way::SecuredIn(path) => Some(&path.stream),
            _ => None,
        }
    }

    fn stream_mut(&mut self) -> Option<&mut Stream> {
        match self {
            Way::SecuredOut(path) => Some(&mut path.stream),
            Way::SecuredIn(path) => Some(&mut path.stream),
            _ => None,
        }
    }
}

/// How many of the bytes `from` to `to` can be read now.
fn at_hand(from: u64, to: u64, ends: Ends<'_>) -> usize {
    usize::try_from(to.min(ends.until).saturating_sub(from)).unwrap_or(usize::MAX)
}

/// What a step that ends a transfer means to the protocol; `None` while it goes on.
pub fn outcome(step: Step) -> Option<How> {
    match step {
        Step::More | Step::Blocked | Step::Cold => None,
        Step::Done => Some(How::Complete),
        Step::Peer(_) => Some(How::Reset),
        Step::Cut => Some(How::Cut),
        Step::Unsecured(why) => Some(How::Unsecured(why)),
        Step::File(errno) => Some(How::File(errno.raw_os_error())),
        Step::Refused => Some(How::File(Errno::INVAL.raw_os_error())),
        Step::Shrunk => Some(How::Shrunk),
    }
}
