//! The ledger of sessions: a region of memory per worker, written by that worker alone and read by the others, so that limits hold
//! over all of them without a message.
//!
//! Runs as root. Reads from: nobody; root makes the regions, hands them out (children.rs) and clears a dead worker's. They are sealed,
//! so that no worker makes one longer or shorter. Not here: what stands in a region (worker/src/ledger.rs).

use std::os::fd::{AsRawFd, OwnedFd};
use std::{fs::File, hash::RandomState, io};

use ipc::link::monitor_config::Config;
use rustix::fs::{self, FallocateFlags, MemfdFlags, SealFlags};

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Keys of the workers' hash; drawn at start, so that no client chooses with whom it shares a place.
    pub keys: RandomState,
    /// By slot from 1 on: to be written, and to be read.
    pub regions: Vec<(OwnedFd, OwnedFd)>,
}

impl Ledger {
    /// Makes the regions.
    pub fn make(&mut self, config: &Config) -> io::Result<()> {
        // 32 bytes for each of four addresses a session, so that most of a region is free, and takes no memory.
        let bytes = 4096 + u64::from(config.max_sessions) * 4 * 32;
        for _ in 0..config.fixed.workers {
            let write = fs::memfd_create("ledger", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            fs::ftruncate(&write, bytes)?;
            fs::fcntl_add_seals(&write, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
            let read = File::open(format!("/proc/self/fd/{}", write.as_raw_fd()))?;
            self.regions.push((write, read.into()));
        }
        Ok(())
    }

    /// A dead worker has no sessions. No seal forbids this, and no region is as long.
    pub fn clear(&self, slot: usize) -> rustix::io::Result<()> {
        fs::fallocate(&self.regions[slot - 1].0, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 1 << 40)
    }
}
