//! The last files that uploads have made under their own names, of all links: each is removed again if its upload fails before
//! anything is in it, and nobody else has begun to write to it.
//!
//! Reads from: worker (hostile), which names a file by the number it was given on its own link, and can have none removed but
//! what was made there a moment ago, is empty, and is still where it was.
//! Threads share this, and none waits for a disk while it is locked. So one thing remains: a session that opens the file in the
//! very moment in which it is removed writes to a file without a name, as does another account's.

use std::{
    collections::VecDeque,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
};

use child_ipc::{link::worker_broker::Why, types::VirtPath};
use rustix::fs::{AtFlags, Stat, statat, unlinkat};

use crate::{resolve::Root, why::why};

/// So many are remembered.
const MOST: usize = 256;

/// The last files that were made.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    links: u64,
    files: VecDeque<File>,
}

#[derive(Debug)]
struct File {
    link: u64,
    number: NonZeroU32,
    path: VirtPath,
    device: u64,
    inode: u64,
}

impl Made {
    /// A name for a link.
    pub(crate) fn link(&self) -> u64 {
        let mut state = self.state();
        state.links += 1;
        state.links
    }

    /// This file was made, and is called by this number on this link.
    pub(crate) fn add(&self, (link, number): (u64, NonZeroU32), path: &VirtPath, stat: &Stat) {
        let file = File { link, number, path: path.clone(), device: stat.st_dev, inode: stat.st_ino };
        let mut state = self.state();
        state.files.truncate(MOST - 1);
        state.files.push_front(file);
    }

    /// This file was opened to be written to by somebody else than who made it: it stays.
    pub(crate) fn spare(&self, stat: &Stat) {
        self.state().files.retain(|file| (file.inode, file.device) != (stat.st_ino, stat.st_dev));
    }

    /// Removes a file that its upload has left as it was made.
    pub(crate) fn undo(&self, (link, number): (u64, NonZeroU32), root: &Root) -> Result<(), Why> {
        let mut state = self.state();
        let at = state.files.iter().position(|file| (file.link, file.number) == (link, number));
        let Some(file) = at.and_then(|at| state.files.remove(at)) else { return Ok(()) };
        drop(state);
        let place = root.place(&file.path)?;
        let stat = statat(&place.directory, place.name, AtFlags::SYMLINK_NOFOLLOW).map_err(why)?;
        if (stat.st_dev, stat.st_ino, stat.st_size, stat.st_nlink) == (file.device, file.inode, 0, 1) {
            unlinkat(&place.directory, place.name, AtFlags::empty()).map_err(why)?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock (and a panic ends the process).
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
