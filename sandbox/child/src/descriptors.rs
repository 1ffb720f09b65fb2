//! What no crate wraps safely: mount_setattr(2).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

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
