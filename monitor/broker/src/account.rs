//! The account this process serves: its root, its permissions, and who it is to the file system.

use std::{ffi::CStr, os::fd::AsFd};

use child_ipc::{
    link::{monitor_broker::BrokerStart, settings::BrokerSettings},
    types::Permissions,
};
use rustix::io::Errno;

use crate::{
    listing::{Ahead, Meta},
    resolve::Root,
    storage::Home,
    zone::Zone,
};

/// One account; the same for every thread, never changed.
#[derive(Debug)]
pub(crate) struct Account {
    /// Its directory.
    pub(crate) root: Root,
    /// What that is kept on.
    pub(crate) home: Home,
    /// What it may do.
    pub(crate) permissions: Permissions,
    /// `atomic_uploads`.
    pub(crate) atomic_uploads: bool,
    /// Who we are to the file system, and how listings call us.
    pub(crate) who: Who,
    /// Of the times in `ls -l` lines; `None`: UTC.
    pub(crate) zone: Option<Zone>,
    /// What long listings are helped by.
    pub(crate) ahead: Ahead,
}

/// A user of the file system.
#[derive(Debug)]
pub(crate) struct Who {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    name: Option<Vec<u8>>,
}

/// Wanted access to a file, as the three bits of a class in its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read.
    Read = 4,
    /// Write.
    Write = 2,
    /// Search a directory.
    Search = 1,
    /// Make and remove names in a directory.
    Change = 3,
}

impl Account {
    /// Call after the ids of the process are the account's.
    pub(crate) fn new(
        root: Root,
        start: &BrokerStart,
        permissions: Permissions,
        settings: &BrokerSettings,
        zone: Option<Zone>,
        ahead: Ahead,
    ) -> Result<Self, Errno> {
        let who = Who {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: rustix::process::getgroups()?.into_iter().map(rustix::process::Gid::as_raw).collect(),
            name: Some(start.account.as_bytes()).filter(|n| fits_a_column(n)).map(<[u8]>::to_vec),
        };
        let atomic_uploads = settings.atomic_uploads;
        Ok(Account { home: Home::new(root.as_fd())?, root, permissions, atomic_uploads, who, zone, ahead })
    }
}

impl Who {
    /// Whether a file of this owner is the account's.
    pub(crate) fn is(&self, uid: u32) -> bool {
        uid == self.uid
    }

    /// How a listing calls the owner `uid`: the account's name if it is the account, else `None` (its number is shown).
    pub(crate) fn name_of(&self, uid: u32) -> Option<&[u8]> {
        self.name.as_deref().filter(|_| uid == self.uid)
    }

    /// Whether the mode bits of a file grant `access`; access control lists may say otherwise, so this is for display.
    pub(crate) fn may(&self, file: &Meta, access: Access) -> bool {
        let shift = if file.uid == self.uid {
            6
        } else if file.gid == self.gid || self.groups.contains(&file.gid) {
            3
        } else {
            0
        };
        let wanted = access as u16;
        file.mode >> shift & wanted == wanted
    }

    /// Whether a name of `file` can be removed from `directory`; in a sticky one the file or the directory must be ours.
    pub(crate) fn may_remove(&self, directory: &Meta, file: &Meta) -> bool {
        let sticky = directory.mode & 0o1000 != 0;
        self.may(directory, Access::Change) && (!sticky || file.uid == self.uid || directory.uid == self.uid)
    }
}

/// Whether a name can stand in a column between spaces, or in a fact before `;`.
fn fits_a_column(name: &[u8]) -> bool {
    name.iter().all(|&b| b.is_ascii_graphic() && b != b';' && b != b'=')
}

/// The empty path, which with `AT_EMPTY_PATH` means the descriptor itself.
pub(crate) const ITSELF: &CStr = c"";
