//! The ledger of sessions: a region of memory per worker, written by that worker alone and read by the others, so that limits hold
//! over all of them without a message.
//!
//! Runs as root. Reads from: nobody; root makes the regions, hands them out and clears a dead worker's. Sealed, so that no worker
//! makes one longer or shorter. Not here: what stands in a region (worker/src/ledger.rs).

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::fs::{fallocate, fcntl_add_seals, ftruncate, memfd_create, open};

/// Bytes for each session that may be: 32 for each of four addresses, so that most of a region is free.
const A_SESSION: u64 = 4 * 32;

/// One region per slot of a worker.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Of the workers' hash; drawn at start, so that no client chooses with whom it shares a place.
    pub key: u64,
    bytes: u64,
    /// To be written, and to be read.
    regions: Vec<(OwnedFd, OwnedFd)>,
}

impl Ledger {
    pub fn new(workers: u32, sessions: u32) -> io::Result<Ledger> {
        let bytes = 4096 + u64::from(sessions) * A_SESSION;
        let regions = (0..workers).map(|_| region(bytes)).collect::<io::Result<_>>()?;
        Ok(Ledger { key: RandomState::new().hash_one(bytes), bytes, regions })
    }

    /// A slot's own region, and the others', by slot.
    pub fn split(&self, slot: usize) -> io::Result<(OwnedFd, Vec<OwnedFd>)> {
        let mut others = self.regions.iter().map(|(_, read)| read.try_clone()).collect::<io::Result<Vec<_>>>()?;
        others.remove(slot - 1);
        Ok((self.regions[slot - 1].0.try_clone()?, others))
    }

    /// A dead worker has no sessions.
    pub fn clear(&self, slot: usize) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&self.regions[slot - 1].0, flags, 0, self.bytes)?)
    }
}

/// An empty region, opened twice: to be written, and to be read.
fn region(bytes: u64) -> io::Result<(OwnedFd, OwnedFd)> {
    let write = memfd_create("ledger", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&write, bytes)?;
    fcntl_add_seals(&write, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    let path = format!("/proc/self/fd/{}", write.as_raw_fd());
    let read = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((write, read))
}
