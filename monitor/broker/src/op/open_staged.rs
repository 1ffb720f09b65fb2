//! `OpenWrite` of a whole file (STOR) with `atomic_uploads`: a hidden file beside it, which `Publish` gives the name.
//!
//! What is there is looked at as if it were to be written, so that the same files are refused; it is not touched. Its mode is
//! the new file's, from the first moment: nobody reads an upload under way who may not read what was there. A link is written
//! through, not replaced, so it has to be done as without `atomic_uploads`.

use child_ipc::{
    link::worker_broker::{Done, Opened, Why, WriteMode},
    types::{Permission, VirtPath},
};
use rustix::{
    fs::{AtFlags, FileType, Mode, fchmod, statat},
    io::Errno,
};

use super::{
    Outcome, new_mode,
    open_write::{self, MODE, NEW, WRITE},
    regular, size,
};
use crate::{account::Account, staged::Staged, why::why};

pub(super) fn run(account: &Account, staged: &mut Staged, path: &VirtPath, mode: WriteMode, umask: u16) -> Outcome {
    if path.is_root() {
        return Err(Why::IsDirectory);
    }
    let place = account.root.place(path)?;
    let there = match statat(&place.directory, place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            return open_write::run(account, path, mode, umask);
        }
        Ok(_) if !account.permissions.has(Permission::Overwrite) => return Err(Why::Exists),
        Ok(_) => Some(regular(&place.open(place.name, WRITE, Mode::empty()).map_err(why)?)?),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(why(errno)),
    };
    // The kernel takes the mask from it, and fchmod(2) below gives that back.
    let permissions = new_mode(there.as_ref().map_or(MODE, |stat| stat.st_mode & 0o777), umask);
    let (number, file) = staged.add(place, |place, name| place.open(name, NEW, permissions))?;
    let made = regular(&file).and_then(|made| match there {
        Some(stat) => fchmod(&file, Mode::from_raw_mode(stat.st_mode & 0o777)).map_err(why).and(Ok(made)),
        None => Ok(made),
    });
    let storage = match made {
        Ok(stat) => account.home.of(&file, &stat),
        Err(why) => {
            staged.discard(number);
            return Err(why);
        }
    };
    let staged = Some(number);
    let size = there.as_ref().map_or(0, size);
    Ok((Done::Opened(Opened { size, created: there.is_none(), chosen: None, storage, staged }), vec![file]))
}
