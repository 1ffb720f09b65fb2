//! `OpenWrite` (STOR, APPE, REST + STOR, STOU): a regular file, write-only.
//!
//! Without permission to overwrite, a file is only ever made with `O_EXCL`, so no race lets one be changed.
//! The mode of new files is 0666 less the mask of the session, and less that of the process (umask(2) is set once, in
//! lib.rs), so that default access control lists count as they do for local programs. Nothing is truncated before it is known to be a regular file.

use std::os::fd::OwnedFd;

use child_ipc::{
    link::worker_broker::{Done, Opened, Why, WriteMode},
    types::{Permission, VirtPath},
};
use rustix::{
    fs::{Mode, OFlags, SeekFrom, ftruncate, seek},
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

use super::{Outcome, new_mode, regular, size};
use crate::{account::Account, why::why};

pub(super) const WRITE: OFlags = OFlags::WRONLY.union(OFlags::NONBLOCK);
const MAKE: OFlags = WRITE.union(OFlags::CREATE);
pub(super) const NEW: OFlags = MAKE.union(OFlags::EXCL);

/// What the umasks are taken from.
pub(super) const MODE: u32 = 0o666;

/// How many names are tried for `Unique`; each but the first has 32 random bits.
const NAMES: usize = 16;

pub(super) fn run(account: &Account, path: &VirtPath, mode: WriteMode, umask: u16) -> Outcome {
    let (file, created) = match mode {
        WriteMode::Unique => return unique(account, path, umask),
        WriteMode::Replace | WriteMode::Append | WriteMode::At(0) | WriteMode::Kept(0) => {
            open_or_make(account, path, umask)?
        }
        WriteMode::At(_) | WriteMode::Kept(_) => (open_existing(account, path)?, false),
    };
    let stat = regular(&file)?;
    let opened = size(&stat);
    let start = match mode {
        WriteMode::Append => opened,
        WriteMode::At(offset) | WriteMode::Kept(offset) if offset > opened => return Err(Why::Invalid),
        WriteMode::At(offset) | WriteMode::Kept(offset) => offset,
        WriteMode::Replace | WriteMode::Unique => 0,
    };
    if start < opened && !matches!(mode, WriteMode::Kept(_)) {
        ftruncate(&file, start).map_err(why)?;
    }
    if start > 0 {
        seek(&file, SeekFrom::Start(start)).map_err(why)?;
    }
    let storage = account.home.of(&file, &stat);
    Ok((Done::Opened(Opened { size: opened, created, chosen: None, storage, staged: None }), vec![file]))
}

/// Opens what is there, or makes it; tells whether it was made.
pub(super) fn open_or_make(account: &Account, path: &VirtPath, umask: u16) -> Result<(OwnedFd, bool), Why> {
    let open = |flags, mode| account.root.open(path.as_bytes(), flags, mode);
    let mode = new_mode(MODE, umask);
    match open(NEW, mode) {
        Err(Errno::EXIST) if account.permissions.has(Permission::Overwrite) => {}
        made => return made.map(|file| (file, true)).map_err(why),
    }
    match open(WRITE, Mode::empty()) {
        // A link that leads nowhere yet, or the file was removed in between.
        Err(Errno::NOENT) => open(MAKE, mode).map(|file| (file, true)),
        opened => opened.map(|file| (file, false)),
    }
    .map_err(why)
}

/// Opens a file to go on in the middle of it: an offset other than 0 means nothing in a file that is not there.
fn open_existing(account: &Account, path: &VirtPath) -> Result<OwnedFd, Why> {
    let opened = if account.permissions.has(Permission::Overwrite) {
        account.root.open(path.as_bytes(), WRITE, Mode::empty())
    } else {
        account.root.look(path).and(Err(Errno::EXIST))
    };
    opened.map_err(|errno| if errno == Errno::NOENT { Why::Invalid } else { why(errno) })
}

/// Makes a file under a name nobody has: the name asked for if it is free, else that name with a random ending; in a
/// directory `stou` with one.
fn unique(account: &Account, path: &VirtPath, umask: u16) -> Outcome {
    let directory = account.root.open(path.as_bytes(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).is_ok();
    let (parent, base) = if directory { (path.clone(), &b"stou"[..]) } else { path.split().ok_or(Why::IsDirectory)? };
    for turn in 0..NAMES {
        let name = if turn == 0 && !directory { base.to_vec() } else { ending(base)? };
        let path = parent.join(&name).map_err(|_| Why::Invalid)?;
        match account.root.open(path.as_bytes(), NEW, new_mode(MODE, umask)) {
            Ok(file) => {
                let stat = regular(&file)?;
                let (size, storage) = (size(&stat), account.home.of(&file, &stat));
                return Ok((
                    Done::Opened(Opened { size, created: true, chosen: Some(path), storage, staged: None }),
                    vec![file],
                ));
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(why(errno)),
        }
    }
    Err(Why::Exists)
}

/// `base`, cut so that it fits into 255 bytes, a dot and eight random hexadecimal digits.
fn ending(base: &[u8]) -> Result<Vec<u8>, Why> {
    let mut random = [0; 4];
    getrandom(&mut random, GetRandomFlags::empty()).map_err(why)?;
    let mut name = base[..base.len().min(255 - 9)].to_vec();
    name.extend_from_slice(format!(".{:08x}", u32::from_ne_bytes(random)).as_bytes());
    Ok(name)
}
