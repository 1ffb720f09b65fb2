//! Work on files that takes its time and needs no data connection: sums (HASH, XCRC and the like), copies (SITE CPTO).
//!
//! By helper threads, a share a turn, so that nobody waits for disk or processor; ABOR or the end of the session cuts it.

use std::os::fd::{AsFd, OwnedFd};

use child_ipc::types::BrokerId;
use md5::Md5;
use rustix::{fs::copy_file_range, io::Errno};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::{
    Tools,
    pooled::{read_at, write_all},
};
use crate::{
    ftp::data::{Algorithm, How, Work},
    helpers::{Files, Lane, On},
};

/// Bytes summed or copied in one turn.
const SHARE: usize = 1 << 20;

/// A sum or a copy under way.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a session has it in a box")]
pub enum Job {
    /// A sum.
    Sum(Sum),
    /// A copy.
    Copy(Copy),
}

impl Job {
    /// Takes the files, which were opened by this broker; `None` when there is one too few.
    pub fn new(work: Work, file: OwnedFd, second: Option<OwnedFd>, broker: BrokerId) -> Option<Self> {
        Some(match work {
            Work::Sum { algorithm, from, to, device } => {
                let lane = Lane { broker, on: On::One(device) };
                Job::Sum(Sum { file, lane, state: State::new(algorithm), start: from, from, to })
            }
            Work::Copy { bytes, devices: (one, other) } => {
                let lane = Lane { broker, on: On::both(one, other) };
                Job::Copy(Copy { file, into: second?, lane, from: 0, to: bytes, by_hand: false })
            }
        })
    }

    /// Where its shares wait for a helper.
    pub fn lane(&self) -> Lane {
        match self {
            Job::Sum(sum) => sum.lane,
            Job::Copy(copy) => copy.lane,
        }
    }

    /// Bytes done so far.
    pub fn moved(&self) -> u64 {
        match self {
            Job::Sum(sum) => sum.from.saturating_sub(sum.start),
            Job::Copy(copy) => copy.from,
        }
    }

    /// One turn; `None` while there is more to do, else the sum (of a copy: nothing), or why it failed.
    pub fn step(&mut self, tools: &mut Tools) -> Option<Result<Vec<u8>, How>> {
        let done = match self {
            Job::Sum(sum) => sum.step(tools),
            Job::Copy(copy) => copy.step(tools),
        };
        match (done, self) {
            (Ok(false), _) => None,
            (Ok(true), Job::Sum(sum)) => Some(Ok(std::mem::take(&mut sum.state).finish())),
            (Ok(true), Job::Copy(_)) => Some(Ok(Vec::new())),
            (Err(how), _) => Some(Err(how)),
        }
    }

    /// The files, for a helper to close.
    pub fn into_files(self) -> Files {
        let lane = self.lane();
        let files = match self {
            Job::Sum(sum) => vec![sum.file],
            Job::Copy(copy) => vec![copy.file, copy.into],
        };
        Files { lane, files }
    }
}

/// The sum of the bytes `from` to `to`; `from` moves on.
#[derive(Debug)]
pub struct Sum {
    file: OwnedFd,
    lane: Lane,
    state: State,
    start: u64,
    from: u64,
    to: u64,
}

impl Sum {
    /// Whether that was all.
    fn step(&mut self, tools: &mut Tools) -> Result<bool, How> {
        let buffer = tools.buffer();
        let mut left = SHARE;
        while left > 0 && self.from < self.to {
            let rest = usize::try_from(self.to - self.from).unwrap_or(usize::MAX);
            let room = rest.min(buffer.len()).min(left);
            let got = match read_at(self.file.as_fd(), buffer.get_mut(..room).unwrap_or_default(), self.from) {
                Ok(0) => return Err(How::Shrunk),
                Ok(got) => got,
                Err(errno) => return Err(file(errno)),
            };
            self.state.update(buffer.get(..got).unwrap_or_default());
            self.from += got as u64;
            left = left.saturating_sub(got);
        }
        Ok(self.from >= self.to)
    }
}

/// A sum so far.
#[derive(Debug)]
enum State {
    Crc32(crc32fast::Hasher),
    Md5(Md5),
    Sha1(Sha1),
    Sha256(Sha256),
    Sha512(Sha512),
}

impl State {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Crc32 => State::default(),
            Algorithm::Md5 => State::Md5(Md5::new()),
            Algorithm::Sha1 => State::Sha1(Sha1::new()),
            Algorithm::Sha256 => State::Sha256(Sha256::new()),
            Algorithm::Sha512 => State::Sha512(Sha512::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            State::Crc32(state) => state.update(bytes),
            State::Md5(state) => state.update(bytes),
            State::Sha1(state) => state.update(bytes),
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            State::Crc32(state) => state.finalize().to_be_bytes().to_vec(),
            State::Md5(state) => state.finalize().to_vec(),
            State::Sha1(state) => state.finalize().to_vec(),
            State::Sha256(state) => state.finalize().to_vec(),
            State::Sha512(state) => state.finalize().to_vec(),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        State::Crc32(crc32fast::Hasher::new())
    }
}

/// A copy of the bytes `from` to `to` to where the other descriptor stands; `from` moves on.
///
/// copy_file_range(2) shares the blocks where the file system can do that, and copies inside the kernel elsewhere.
#[derive(Debug)]
pub struct Copy {
    file: OwnedFd,
    into: OwnedFd,
    lane: Lane,
    from: u64,
    to: u64,
    /// The kernel cannot do it between these two files.
    by_hand: bool,
}

impl Copy {
    /// Whether that was all.
    fn step(&mut self, tools: &mut Tools) -> Result<bool, How> {
        let mut left = SHARE;
        while left > 0 && self.from < self.to {
            let rest = usize::try_from(self.to - self.from).unwrap_or(usize::MAX);
            let got = if self.by_hand {
                self.through_buffer(tools, rest.min(left))?
            } else {
                match copy_file_range(&self.file, Some(&mut self.from), &self.into, None, rest.min(left)) {
                    // The file has become shorter, or its file system does not say how long it is: reading tells.
                    Ok(0) | Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                        self.by_hand = true;
                        0
                    }
                    Ok(got) => got,
                    Err(Errno::INTR) => 0,
                    Err(errno) => return Err(file(errno)),
                }
            };
            left = left.saturating_sub(got);
        }
        Ok(self.from >= self.to)
    }

    fn through_buffer(&mut self, tools: &mut Tools, most: usize) -> Result<usize, How> {
        let buffer = tools.buffer();
        let room = most.min(buffer.len());
        let got = match read_at(self.file.as_fd(), buffer.get_mut(..room).unwrap_or_default(), self.from) {
            Ok(0) => return Err(How::Shrunk),
            Ok(got) => got,
            Err(errno) => return Err(file(errno)),
        };
        write_all(self.into.as_fd(), buffer.get(..got).unwrap_or_default()).map_err(file)?;
        self.from += got as u64;
        Ok(got)
    }
}

fn file(errno: Errno) -> How {
    How::File(errno.raw_os_error())
}
