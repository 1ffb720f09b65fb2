//! The hidden files that uploads are written to (staged.rs): what they are called, and what is done about those left behind.
//!
//! Reads from: the file system, where anybody may have made such a name; so only a regular file of the account's own is ever
//! removed. One that is written is under an exclusive flock(2), which ends with the last descriptor of it, here or in a
//! worker, whatever they die of: what nobody has locked, nobody will publish.

use std::{ffi::CStr, os::fd::OwnedFd};

use child_ipc::{link::worker_broker::Why, types::Permission};
use rustix::{
    fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RawDir, Stat, flock, fstat, statat, unlinkat},
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

use crate::{
    account::Account,
    resolve::{Place, open_in},
    why::why,
};

/// What the names end with, in front of eight hexadecimal digits.
const MARK: &[u8] = b".caisson-";
const DIGITS: usize = 8;
/// The longest name, by most file systems.
const LONGEST: usize = 255;
/// What one getdents64(2) brings at most, in bytes.
const BATCH: usize = 4096;

/// `.NAME.caisson-XXXXXXXX`, the name cut so that it fits.
pub(crate) fn new_name(name: &[u8]) -> Result<Vec<u8>, Why> {
    let mut random = [0; 4];
    getrandom(&mut random, GetRandomFlags::empty()).map_err(why)?;
    let kept = &name[..name.len().min(LONGEST - 1 - MARK.len() - DIGITS)];
    let digits = format!("{:08x}", u32::from_ne_bytes(random));
    Ok([b".", kept, MARK, digits.as_bytes()].concat())
}

/// Whether this is such a name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let Some(kept) = name.strip_prefix(b".").and_then(|rest| rest.len().checked_sub(MARK.len() + DIGITS)) else {
        return false;
    };
    let (mark, digits) = name[1 + kept..].split_at(MARK.len());
    kept > 0 && mark == MARK && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Locks a file that was just made. [`Errno::EXIST`]: it was taken for one left behind, and another is to be made.
pub(crate) fn hold(file: &OwnedFd) -> Result<(), Errno> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Errno::EXIST),
        Ok(()) if fstat(file)?.st_nlink == 0 => Err(Errno::EXIST),
        // A file system without locks gives none to those who look for what is left behind, either.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes what has such a name in a directory if it was left behind, as far as the account may.
pub(crate) fn tidy(account: &Account, directory: &OwnedFd, name: &CStr) {
    if account.permissions.has(Permission::Write) {
        // What cannot be removed stays; who met it had other things in mind.
        let _ = remove_left(account, directory, name);
    }
}

fn remove_left(account: &Account, directory: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let look = || statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let ours =
        |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && account.who.is(stat.st_uid);
    if !ours(&look()?) {
        return Ok(());
    }
    // Some file systems lock only what is open for writing.
    let file = open_in(directory, name.to_bytes(), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty())?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let (held, named) = (fstat(&file)?, look()?);
    if ours(&held) && (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino) {
        unlinkat(directory, name, AtFlags::empty())?;
    }
    Ok(())
}

/// Removes what was left behind in the directory that has this name, unless there is anything else in it; whether it may be
/// empty now.
pub(crate) fn clear(account: &Account, place: &Place<'_>) -> bool {
    let Ok(directory) = place.open(place.name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) else { return false };
    let mut batch = Vec::with_capacity(BATCH);
    let mut reader = RawDir::new(&directory, batch.spare_capacity_mut());
    while let Some(Ok(entry)) = reader.next() {
        match entry.file_name() {
            name if is_name(name.to_bytes()) => tidy(account, &directory, name),
            name if matches!(name.to_bytes(), b"." | b"..") => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_made_is_known_again_and_fits() {
        for length in [1, 10, 237, 238, 255] {
            let name = new_name(&vec![b'n'; length]).unwrap();
            assert!(is_name(&name) && name.len() <= LONGEST, "{length}");
        }
        for other in [
            &b""[..],
            b".",
            b".f",
            b".caisson-00000000",
            b"f.caisson-00000000",
            b".f.caisson-0000000",
            b".f.caisson-0000000G",
        ] {
            assert!(!is_name(other), "{}", other.escape_ascii());
        }
    }
}
