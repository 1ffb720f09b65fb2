//! What a line says about a file: one statx(2) each, in the file's own directory, links not followed.

use std::{ffi::CStr, os::fd::AsFd};

use rustix::{
    fs::{AtFlags, FileType, Statx, StatxFlags, statx},
    io::Errno,
};

use crate::account::ITSELF;

/// Attributes of a file, as far as listings show them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    /// What it is.
    pub(crate) kind: FileType,
    /// Permission, set-id and sticky bits, 0 to 0o7777.
    pub(crate) mode: u16,
    /// Hard links.
    pub(crate) links: u32,
    /// Owner.
    pub(crate) uid: u32,
    /// Group.
    pub(crate) gid: u32,
    /// Bytes.
    pub(crate) size: u64,
    /// Modification time, UTC seconds since 1970.
    pub(crate) modified: i64,
    /// Device, major and minor.
    pub(crate) device: (u32, u32),
    /// Inode number.
    pub(crate) inode: u64,
}

const WANTED: StatxFlags = StatxFlags::TYPE
    .union(StatxFlags::MODE)
    .union(StatxFlags::NLINK)
    .union(StatxFlags::UID)
    .union(StatxFlags::GID)
    .union(StatxFlags::MTIME)
    .union(StatxFlags::INO)
    .union(StatxFlags::SIZE);

/// A listing asks no server of a network file system again for each name.
const QUICK: AtFlags = AtFlags::STATX_DONT_SYNC.union(AtFlags::NO_AUTOMOUNT);

impl Meta {
    /// Of a name in a directory.
    pub(crate) fn of_name(directory: impl AsFd, name: &CStr) -> Result<Self, Errno> {
        statx(directory, name, AtFlags::SYMLINK_NOFOLLOW | QUICK, WANTED).map(|s| Meta::from(&s))
    }

    /// Of an open file.
    pub(crate) fn of(file: impl AsFd) -> Result<Self, Errno> {
        statx(file, ITSELF, AtFlags::EMPTY_PATH | QUICK, WANTED).map(|s| Meta::from(&s))
    }

    /// Of a name that getdents64(2) gave: `None` when it is gone by now. What cannot be looked at (a directory we may
    /// read but not search) is shown with the kind alone.
    pub(super) fn of_entry(directory: impl AsFd, name: &CStr, kind: FileType) -> Option<Self> {
        match Self::of_name(directory, name) {
            Ok(meta) => Some(meta),
            Err(Errno::NOENT) => None,
            Err(_) => Some(Meta { kind, ..Self::NOTHING }),
        }
    }

    const NOTHING: Meta = Meta {
        kind: FileType::Unknown,
        mode: 0,
        links: 1,
        uid: 0,
        gid: 0,
        size: 0,
        modified: 0,
        device: (0, 0),
        inode: 0,
    };
}

impl From<&Statx> for Meta {
    fn from(stat: &Statx) -> Self {
        Meta {
            kind: FileType::from_raw_mode(stat.stx_mode.into()),
            mode: stat.stx_mode & 0o7777,
            links: stat.stx_nlink,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            size: stat.stx_size,
            modified: stat.stx_mtime.tv_sec,
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
        }
    }
}
