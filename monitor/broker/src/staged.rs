//! Uploads that are not published yet: each is a hidden file beside the one it is to become, and belongs to one link.
//!
//! Reads from: worker (hostile), which names an upload by the number it was given on this link, and can do no more to it than
//! publish it once or have it removed. When the link ends, for whatever reason, what was not published is removed; only a
//! broker that is killed leaves its hidden files behind. Not here: their names, and what becomes of those (unfinished.rs).

use std::{collections::HashMap, num::NonZeroU32, os::fd::OwnedFd};

use child_ipc::link::worker_broker::Why;
use rustix::{
    fs::{AtFlags, RenameFlags, fsync, linkat, renameat_with, unlinkat},
    io::{Errno, fcntl_dupfd_cloexec},
};

use crate::{resolve::Place, unfinished, why::why};

/// Most uploads of one link that are not published.
const MOST: usize = 1024;
/// How many names are tried; each has 32 random bits.
const NAMES: usize = 16;

/// The uploads of one link.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    uploads: HashMap<NonZeroU32, Upload>,
    last: u32,
}

#[derive(Debug)]
struct Upload {
    directory: OwnedFd,
    hidden: Vec<u8>,
    name: Vec<u8>,
    /// Holds the lock (unfinished.rs), also when the worker has closed its descriptor.
    file: OwnedFd,
}

impl Upload {
    fn take_name(&self, replace: bool) -> Result<(), Errno> {
        let (directory, hidden, name) = (&self.directory, self.hidden.as_slice(), self.name.as_slice());
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(directory, hidden, directory, name, flags) {
            // rename(2): the file system (NFS, most of FUSE) does not know the flag. link(2) never replaces.
            Err(Errno::INVAL) if !replace => {
                linkat(directory, hidden, directory, name, AtFlags::empty())?;
                // One name too many, if that fails, is tried again by whoever drops this.
                let _ = unlinkat(directory, hidden, AtFlags::empty());
                Ok(())
            }
            renamed => renamed,
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Gone already, or nobody may remove it any more.
        let _ = unlinkat(&self.directory, self.hidden.as_slice(), AtFlags::empty());
    }
}

impl Staged {
    /// Makes the hidden file of an upload that is to become `place`; `make` opens it under a name nobody has.
    pub(crate) fn add(
        &mut self,
        place: Place<'_>,
        make: impl Fn(&Place<'_>, &[u8]) -> Result<OwnedFd, Errno>,
    ) -> Result<(NonZeroU32, OwnedFd), Why> {
        if self.uploads.len() >= MOST {
            return Err(Why::Busy);
        }
        let number = NonZeroU32::new(self.last.wrapping_add(1)).unwrap_or(NonZeroU32::MIN);
        if self.uploads.contains_key(&number) {
            return Err(Why::Busy);
        }
        for _ in 0..NAMES {
            let hidden = unfinished::new_name(place.name)?;
            match make(&place, &hidden).and_then(|file| unfinished::hold(&file).map(|()| file)) {
                Ok(file) => {
                    let name = place.name.to_vec();
                    let upload = Upload { directory: place.directory, hidden, name, file };
                    let file = fcntl_dupfd_cloexec(&upload.file, 3).map_err(why)?;
                    self.uploads.insert(number, upload);
                    self.last = number.get();
                    return Ok((number, file));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(why(errno)),
            }
        }
        Err(Why::Exists)
    }

    /// Gives an upload its name, at once; with `replace`, in place of a file that has it. With `sync`, the name is on the disk
    /// then. If it cannot have the name, the upload is removed.
    pub(crate) fn publish(&mut self, number: NonZeroU32, replace: bool, sync: bool) -> Result<(), Why> {
        let upload = self.uploads.remove(&number).ok_or(Why::NotFound)?;
        upload.take_name(replace).map_err(why)?;
        if sync { sync_names(&upload.directory).map_err(why) } else { Ok(()) }
    }

    /// Removes an upload that will not be published.
    pub(crate) fn discard(&mut self, number: NonZeroU32) {
        self.uploads.remove(&number);
    }
}

/// Brings the names of a directory to the disk. Who may not list a directory may not open it either: then the file system
/// has to see to it.
fn sync_names(directory: &OwnedFd) -> Result<(), Errno> {
    match crate::resolve::open_itself(directory) {
        Ok(directory) => fsync(directory),
        Err(Errno::ACCESS) => Ok(()),
        Err(errno) => Err(errno),
    }
}
