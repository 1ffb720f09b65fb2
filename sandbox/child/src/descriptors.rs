//! What children do to descriptors by calls that no crate of ours wraps safely: close_range(2), dup3(2), mount_setattr(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::Error;

/// Closes every descriptor above 2 but `kept`.
pub(crate) fn close_all_but(kept: &OwnedFd) -> Result<(), Error> {
    let kept = kept.as_raw_fd().unsigned_abs();
    for (first, last) in [(3, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        // SAFETY: the process has just been exec'd and owns no descriptor above 2 but `kept`: what is closed here was left
        // open by the parent, and nothing in this address space refers to it (upheld by link.rs, the first step of a child).
        if first <= last && unsafe { libc::close_range(first, last, 0) } != 0 {
            return Err(Error::fault("close_range")(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Makes `old` refer to what `new` refers to; the number and its owner stay.
pub(crate) fn replace_descriptor(new: impl AsFd, old: impl AsFd) -> Result<(), Error> {
    let (new, old) = (new.as_fd().as_raw_fd(), old.as_fd().as_raw_fd());
    // SAFETY: both are open (borrowed for the call). `old` stays open under the same number and its owner still closes it
    // once; that it now refers to another open file is what Root::Directory documents.
    if unsafe { libc::dup3(new, old, libc::O_CLOEXEC) } < 0 {
        return Err(Error::fault("dup3")(io::Error::last_os_error()));
    }
    Ok(())
}

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Sets attributes of a whole tree of mounts, and makes it private.
pub(crate) fn set_mount_attributes(tree: &OwnedFd, set: u64) -> io::Result<()> {
    let attr = MountAttr { set, clear: 0, propagation: libc::MS_PRIVATE, userns: 0 };
    // SAFETY: the path is a static empty string, `attr` outlives the call and its size is passed with it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
