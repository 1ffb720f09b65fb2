//! What a process sees as `/`: its own mount, network, IPC and UTS namespaces, and a root with nothing of the machine in it.
//!
//! Runs as root, once, before the ids change. Reads no path that anybody chose: the account's root comes as a descriptor.
//! Not here: what is refused beneath that root (landlock.rs, monitor/broker/src/resolve.rs).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sched::CloneFlags;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{DupFlags, Errno};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change, move_mount,
    open_tree, unmount,
};

use libc::{MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};
use sandbox::creds::set_mount_attributes;

use crate::{Error, Rights, Root};

/// Where the new root is mounted before it becomes `/`. Any directory that exists serves; in our namespace nobody else sees it.
const STAGE: &str = "/dev";

/// Gives the process namespaces of its own and makes `root` its `/`.
pub(crate) fn enter(root: &mut Root<'_>, rights: &Rights) -> Result<(), Error> {
    match root {
        Root::Keep => Ok(()),
        Root::Empty => {
            leave_namespaces()?;
            let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount("none", STAGE, "tmpfs", flags, Some(c"mode=0555,size=4k,nr_inodes=1")).map_err(refused)?;
            pivot()?;
            verify_empty()
        }
        Root::Directory(directory) => enter_directory(directory, rights),
    }
}

fn enter_directory(directory: &mut OwnedFd, rights: &Rights) -> Result<(), Error> {
    let before = rustix::fs::fstat(&*directory).map_err(Error::fault("fstat"))?;
    // The copy of the mount must be taken while the descriptor still belongs to our mount namespace.
    let tree = copy_tree(directory.as_fd(), rights)?;
    leave_namespaces()?;
    move_mount(&tree, "", CWD, STAGE, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).map_err(refused)?;
    pivot()?;
    let new = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(Error::fault("open /"))?;
    rustix::io::dup3(&new, directory, DupFlags::CLOEXEC).map_err(Error::fault("dup3"))?;
    let after = rustix::fs::fstat(&*directory).map_err(Error::fault("fstat"))?;
    if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino) {
        return Err(Error::Broken("the account's root"));
    }
    Ok(())
}

/// A detached copy of the directory with the mounts beneath it, without set-uid, devices and programs.
///
/// Read-only for an account that may change nothing: Landlock before ABI 3 would let it truncate.
fn copy_tree(directory: BorrowedFd<'_>, rights: &Rights) -> Result<OwnedFd, Error> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(directory.as_fd(), "", flags).map_err(refused)?;
    let mut set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    if rights.changes_nothing() {
        set |= MOUNT_ATTR_RDONLY;
    }
    set_mount_attributes(&tree, set).map_err(refused)?;
    Ok(tree)
}

fn leave_namespaces() -> Result<(), Error> {
    let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    nix::sched::unshare(own).map_err(refused)?;
    // Nothing we mount from here on may show outside.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).map_err(refused)
}

/// Makes the mount at [`STAGE`] the root and lets go of the old one (pivot_root(2), "pivot_root(".", ".")").
fn pivot() -> Result<(), Error> {
    rustix::process::chdir(STAGE).map_err(refused)?;
    rustix::process::pivot_root(".", ".").map_err(refused)?;
    unmount(".", UnmountFlags::DETACH).map_err(refused)?;
    rustix::process::chdir("/").map_err(refused)
}

fn verify_empty() -> Result<(), Error> {
    let mut entries = std::fs::read_dir("/").map_err(Error::fault("open /"))?;
    let writable = rustix::fs::mkdirat(CWD, "/x", Mode::empty());
    if entries.next().is_some() || writable != Err(Errno::ROFS) {
        return Err(Error::Broken("the empty root"));
    }
    Ok(())
}

fn refused(e: impl Into<std::io::Error>) -> Error {
    Error::unenforced("a root directory and namespaces of its own", e.into())
}
