//! The only place where paths are walked: openat2(2) beneath the account's root.
//!
//! Reads from: worker (hostile), through [`VirtPath`]. The form of a path is not trusted: `RESOLVE_IN_ROOT` keeps `..`,
//! absolute links and racing renames beneath the root descriptor whatever the bytes are, and `RESOLVE_NO_MAGICLINKS` keeps
//! out the links of /proc. Links are followed; absolute ones start at the account's root.
//! Holds: every call on a name is relative to a descriptor that came from here, with one component that is no link to follow.
//! Not here: whether an operation is allowed (rules.rs), Landlock and the mount namespace (sandbox).

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use child_ipc::{link::worker_broker::Why, types::VirtPath};
use rustix::{
    fs::{Mode, OFlags, ResolveFlags, fstat, openat2},
    io::Errno,
};

use crate::why::why;

/// How often openat2(2) is asked again after EAGAIN: a rename somewhere raced with a `..` of a link.
const RETRIES: usize = 256;

const BENEATH: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);

/// The account's root directory.
#[derive(Debug)]
pub(crate) struct Root {
    directory: OwnedFd,
    /// Whether it is `/` of this process: then even a call that walks a path by itself cannot leave it.
    is_slash: bool,
}

/// A directory, and a name in it that was not looked up yet.
#[derive(Debug)]
pub(crate) struct Place<'p> {
    /// The directory, `O_PATH`.
    pub(crate) directory: OwnedFd,
    /// One component, never empty, `.` or `..`.
    pub(crate) name: &'p [u8],
}

/// An open directory once more. What is counted in an open file is counted apart, so that two threads do not wait for
/// each other at every call.
pub(crate) fn again(directory: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(directory, c".", flags, Mode::empty(), BENEATH)
}

impl Root {
    /// Opens the directory, by a path of the machine that the configuration names, while the process still sees the machine.
    pub(crate) fn open_home(home: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(home, flags, Mode::empty())?;
        Ok(Root { directory, is_slash: false })
    }

    /// The directory, for confining: another descriptor may take its place.
    pub(crate) fn directory(&mut self) -> &mut OwnedFd {
        &mut self.directory
    }

    /// Looks, once the process is confined, at what its root is, and whether it may be entered at all.
    pub(crate) fn settled(mut self) -> Result<Self, Errno> {
        self.enter(&VirtPath::root())?;
        let (ours, slash) = (fstat(&self.directory)?, rustix::fs::stat("/")?);
        self.is_slash = (ours.st_dev, ours.st_ino) == (slash.st_dev, slash.st_ino);
        Ok(self)
    }

    /// Whether the root is `/` of this process.
    pub(crate) fn is_slash(&self) -> bool {
        self.is_slash
    }

    /// Opens what the path leads to. Close-on-exec, never a controlling terminal.
    pub(crate) fn open(&self, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        self.open_by(path, flags, mode, ResolveFlags::empty())
    }

    fn open_by(&self, path: &[u8], flags: OFlags, mode: Mode, how: ResolveFlags) -> Result<OwnedFd, Errno> {
        let path = match path.iter().position(|&b| b != b'/') {
            Some(first) => &path[first..],
            None => b".",
        };
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        // openat2(2) takes no other flags beside O_PATH.
        let flags = if flags.contains(OFlags::PATH) { flags.difference(OFlags::NOCTTY) } else { flags };
        let mut tries = 0;
        loop {
            match openat2(&self.directory, path, flags, mode, BENEATH | how) {
                Err(Errno::AGAIN | Errno::INTR) if tries < RETRIES => tries += 1,
                opened => return opened,
            }
        }
    }

    /// A handle on what the path leads to: for looking at it, not for its contents.
    pub(crate) fn look(&self, path: &VirtPath) -> Result<OwnedFd, Errno> {
        self.open(path.as_bytes(), OFlags::PATH, Mode::empty())
    }

    /// A handle on a directory that we have search permission for: the `.` behind it is what the kernel checks that with.
    pub(crate) fn enter(&self, path: &VirtPath) -> Result<OwnedFd, Errno> {
        let path = [path.as_bytes(), b"/."].concat();
        self.open(&path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
    }

    /// Splits off the last component and opens the directory it is in. The root itself has no place: [`Why::Denied`].
    pub(crate) fn place<'p>(&self, path: &'p VirtPath) -> Result<Place<'p>, Why> {
        self.place_by(path, ResolveFlags::empty())
    }

    /// The same where no directory on the way may be a link: [`Why::Invalid`].
    pub(crate) fn place_without_links<'p>(&self, path: &'p VirtPath) -> Result<Place<'p>, Why> {
        self.place_by(path, ResolveFlags::NO_SYMLINKS)
    }

    fn place_by<'p>(&self, path: &'p VirtPath, how: ResolveFlags) -> Result<Place<'p>, Why> {
        let bytes = path.as_bytes();
        let slash = bytes.iter().rposition(|&b| b == b'/').ok_or(Why::Invalid)?;
        let (parent, name) = (&bytes[..slash], &bytes[slash + 1..]);
        match name {
            b"" => Err(Why::Denied),
            b"." | b".." => Err(Why::Invalid),
            name => {
                let flags = OFlags::PATH | OFlags::DIRECTORY;
                let directory = self.open_by(parent, flags, Mode::empty(), how).map_err(why)?;
                Ok(Place { directory, name })
            }
        }
    }
}

impl Place<'_> {
    /// Opens a name of this directory, which must be one component; a link there is not followed.
    pub(crate) fn open(&self, name: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        open_in(&self.directory, name, flags, mode)
    }
}

/// The same for a directory that is open.
pub(crate) fn open_in(directory: &OwnedFd, name: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    openat2(directory, name, flags, mode, BENEATH | ResolveFlags::NO_SYMLINKS)
}

/// Opens a directory to read that there is only a handle on.
pub(crate) fn open_itself(directory: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(directory, ".", flags, Mode::empty(), BENEATH | ResolveFlags::NO_SYMLINKS)
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}
