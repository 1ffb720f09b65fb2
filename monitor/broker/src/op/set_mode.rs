//! `SetMode` (SITE CHMOD): the permission bits of a file or directory. Set-id and sticky bits are never set: `Denied`.
//!
//! fchmod(2) needs a descriptor that is open for reading or writing, and fchmodat(2) walks the path again, following
//! links. So the second comes only where the first cannot (a file we may neither read nor write), and only when the
//! account's root is `/` of this process, so that there is nothing outside to reach. A broker without a root of its
//! own (started by an ordinary user) refuses that case.

use std::os::fd::OwnedFd;

use child_ipc::{link::worker_broker::Why, types::VirtPath};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, chmodat, fchmod, fstat, statat},
    io::Errno,
};

use super::{NOTHING, Outcome};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath, mode: u16) -> Outcome {
    if mode & !0o777 != 0 {
        return Err(Why::Denied);
    }
    match open(account, path) {
        Ok(file) => {
            let stat = fstat(&file).map_err(why)?;
            fchmod(&file, new_mode(&stat, mode)?).map_err(why)?;
        }
        Err(Errno::ACCESS) if account.root.is_slash() => by_name(account, path, mode)?,
        Err(errno) => return Err(why(errno)),
    }
    NOTHING
}

fn open(account: &Account, path: &VirtPath) -> Result<OwnedFd, Errno> {
    let open = |how| account.root.open(path.as_bytes(), how | OFlags::NONBLOCK, Mode::empty());
    match open(OFlags::RDONLY) {
        // A directory cannot be opened for writing: EISDIR tells no more than that.
        Err(Errno::ACCESS) => open(OFlags::WRONLY).map_err(|e| if e == Errno::ISDIR { Errno::ACCESS } else { e }),
        opened => opened,
    }
}

fn by_name(account: &Account, path: &VirtPath, mode: u16) -> Result<(), Why> {
    let place = account.root.place(path)?;
    let stat = statat(&place.directory, place.name, AtFlags::SYMLINK_NOFOLLOW).map_err(why)?;
    chmodat(&place.directory, place.name, new_mode(&stat, mode)?, AtFlags::empty()).map_err(why)
}

/// The new mode of a file; a directory keeps its set-gid and sticky bits, which are its administrator's.
fn new_mode(stat: &Stat, mode: u16) -> Result<Mode, Why> {
    let kept = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => 0,
        FileType::Directory => stat.st_mode & 0o7000,
        FileType::Symlink => return Err(Why::Denied),
        _ => return Err(Why::NotRegular),
    };
    Ok(Mode::from_raw_mode(u32::from(mode) | kept))
}
