//! What the bytes of a file are kept on, so that the worker knows when it might have to wait for them.
//!
//! statfs(2) names the file system. Those that keep everything in memory, and those on disks of this machine that tell what
//! is in the page cache (`FMODE_NOWAIT` in Linux), are listed; of all others the worst is assumed.

use std::{
    io::IoSliceMut,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use child_ipc::link::worker_broker::{Medium, Storage};
use rustix::{
    fs::{Stat, fstat, fstatfs},
    io::{Errno, ReadWriteFlags, preadv2},
};

/// statfs(2): `TMPFS_MAGIC`, `RAMFS_MAGIC`, `HUGETLBFS_MAGIC`.
const MEMORY: [u64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
/// statfs(2): ext2 to ext4, XFS, Btrfs, F2FS.
const DISK: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// Bytes that are looked for in the page cache: a file that small is sent without another look.
const LOOK: usize = 32 << 10;

/// Where the account's root is: most of its files are there as well, and need not be asked about. The device stays the same
/// file system for as long as the root is held open.
#[derive(Debug)]
pub(crate) struct Home(Storage);

impl Home {
    /// Of the account's root.
    pub(crate) fn new(root: BorrowedFd<'_>) -> Result<Self, Errno> {
        Ok(Home(ask(root, &fstat(root)?)))
    }

    /// Of a file that is written.
    pub(crate) fn of(&self, file: &OwnedFd, stat: &Stat) -> Storage {
        if stat.st_dev == self.0.device { self.0 } else { ask(file.as_fd(), stat) }
    }

    /// Of a file that is open for reading. Asking for what is not in the page cache makes the kernel fetch it, and does not
    /// wait for that.
    pub(crate) fn to_read(&self, file: &OwnedFd, stat: &Stat) -> Storage {
        let mut storage = self.of(file, stat);
        let Medium::Disk { .. } = storage.medium else { return storage };
        let mut buffer = [0; LOOK];
        let room = buffer.len().min(usize::try_from(stat.st_size).unwrap_or(LOOK));
        match preadv2(file, &mut [IoSliceMut::new(&mut buffer[..room])], 0, ReadWriteFlags::NOWAIT) {
            Ok(got) => storage.medium = Medium::Disk { cached: got as u64 },
            Err(Errno::OPNOTSUPP) => storage.medium = Medium::Remote,
            Err(_) => {}
        }
        storage
    }
}

fn ask(file: BorrowedFd<'_>, stat: &Stat) -> Storage {
    // Some architectures have it signed.
    let medium = match fstatfs(file).map(|stat| stat.f_type as u64) {
        Ok(kind) if MEMORY.contains(&kind) => Medium::Memory,
        Ok(kind) if DISK.contains(&kind) => Medium::Disk { cached: 0 },
        _ => Medium::Remote,
    };
    Storage { device: stat.st_dev, medium }
}
