//! Bytes as they are, by copying through the worker's one buffer.

use std::os::fd::BorrowedFd;

use rustix::{
    io::{Errno, pread, write},
    net::{RecvFlags, SendFlags, recv, send},
};

use super::{Ends, Path, Step, Tools};

/// The bytes `from` to `to` of the file; `from` moves on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Out {
    pub from: u64,
    pub to: u64,
}

impl Path for Out {
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step {
        let buffer = tools.buffer();
        let mut left = share;
        while left > 0 {
            if self.from >= self.to {
                return Step::Done;
            }
            let rest = super::at_hand(self.from, self.to, ends);
            if rest == 0 {
                return Step::Cold;
            }
            let room = rest.min(buffer.len());
            let got = match read_at(ends.file, buffer.get_mut(..room).unwrap_or_default(), self.from) {
                Ok(0) => return Step::Shrunk,
                Ok(got) => got,
                Err(errno) => return Step::File(errno),
            };
            match send_some(ends.data, buffer.get(..got).unwrap_or_default()) {
                Ok(sent) => {
                    self.from += sent as u64;
                    *moved += sent as u64;
                    left = left.saturating_sub(sent);
                }
                Err(Errno::AGAIN) => return Step::Blocked,
                Err(errno) => return Step::Peer(errno),
            }
        }
        Step::More
    }
}

/// To where the descriptor stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct In;

impl Path for In {
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step {
        let buffer = tools.buffer();
        let mut left = share;
        while left > 0 {
            let got = match receive_some(ends.data, buffer) {
                Ok(0) => return Step::Done,
                Ok(got) => got,
                Err(Errno::AGAIN) => return Step::Blocked,
                Err(errno) => return Step::Peer(errno),
            };
            *moved += got as u64;
            left = left.saturating_sub(got);
            if let Err(errno) = write_all(ends.file, buffer.get(..got).unwrap_or_default()) {
                return Step::File(errno);
            }
        }
        Step::More
    }
}

/// pread(2), not interrupted.
pub(super) fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| pread(file, &mut *buffer, offset))
}

/// send(2), not interrupted.
pub(super) fn send_some(data: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| send(data, bytes, SendFlags::NOSIGNAL))
}

/// recv(2), not interrupted.
pub(super) fn receive_some(data: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| recv(data, &mut *buffer, RecvFlags::empty())).map(|(_, got)| got)
}

/// write(2) until all is written.
pub(super) fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match write(file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(put) => bytes = bytes.get(put..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
