//! Lines on their way into a memfd that nobody can change afterwards.

use std::os::fd::OwnedFd;

use child_ipc::link::worker_broker::Why;
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::{Errno, pwrite},
};

use crate::why::why;

/// Lines are written out when this many bytes are there.
const PIECE: usize = 64 * 1024;

/// Longest listing in bytes; a longer one is refused as [`Why::Invalid`].
const MOST: u64 = 512 << 20;

/// A listing that is being made.
#[derive(Debug)]
pub(crate) struct Output {
    memfd: OwnedFd,
    buffer: Vec<u8>,
    written: u64,
}

impl Output {
    /// An empty listing.
    pub(super) fn new() -> Result<Self, Why> {
        Ok(Output { memfd: memfd().map_err(why)?, buffer: Vec::new(), written: 0 })
    }

    /// Where the line that is being made goes.
    pub(super) fn line(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Ends the line with CR LF.
    pub(super) fn end_line(&mut self) -> Result<(), Why> {
        self.buffer.extend_from_slice(b"\r\n");
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    /// Written by offset, so that the position of the descriptor, which the reader shares, stays at the start.
    fn flush(&mut self) -> Result<(), Why> {
        let mut rest = &self.buffer[..];
        if self.written + rest.len() as u64 > MOST {
            return Err(Why::Invalid);
        }
        while !rest.is_empty() {
            match pwrite(&self.memfd, rest, self.written) {
                Ok(0) => return Err(Why::NoSpace),
                Ok(count) => {
                    self.written += count as u64;
                    rest = rest.get(count..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(why(errno)),
            }
        }
        self.buffer.clear();
        Ok(())
    }

    /// The finished listing and its length in bytes; neither its size nor a byte of it can change any more.
    pub(crate) fn seal(mut self) -> Result<(OwnedFd, u64), Why> {
        self.flush()?;
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&self.memfd, seals).map_err(why)?;
        Ok((self.memfd, self.written))
    }
}

/// Not executable where the kernel knows that (Linux 6.3; `vm.memfd_noexec` may demand it).
fn memfd() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"listing", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"listing", flags),
        made => made,
    }
}
