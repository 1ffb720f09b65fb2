//! The operations, one file each: what a worker may ask of the account's files.
//!
//! Reads from: worker (hostile). Every operation passes rules.rs first, reaches files through resolve.rs only, and turns
//! errno into an answer through why.rs only.

mod change_dir;
mod copy;
mod facts;
mod list;
mod make_dir;
mod open_read;
mod open_staged;
mod open_write;
mod remove;
mod remove_dir;
mod rename;
mod set_facts;
mod set_mode;
mod set_times;
mod space;
mod stat;
mod symlink;

use std::os::fd::OwnedFd;

use child_ipc::{
    link::worker_broker::{Attrs, Done, Kind, Op, Why, WriteMode},
    types::Permission,
};
use rustix::fs::{FileType, Mode, OFlags, Stat, fcntl_setfl, fstat};

use crate::{account::Account, rules, staged::Staged, why::why};

/// What was done, and the descriptors that go with it.
pub(crate) type Outcome = Result<(Done, Vec<OwnedFd>), Why>;

/// Does what is asked, if the account may.
pub(crate) fn run(account: &Account, staged: &mut Staged, op: &Op) -> Outcome {
    rules::check(op, account.permissions)?;
    match op {
        Op::OpenRead(path) => open_read::run(account, path),
        Op::OpenWrite { path, mode: mode @ (WriteMode::Replace | WriteMode::Kept(0)), umask }
            if account.atomic_uploads =>
        {
            open_staged::run(account, staged, path, *mode, *umask)
        }
        Op::OpenWrite { path, mode, umask } => open_write::run(account, path, *mode, *umask),
        Op::Stat(path) => stat::run(account, path),
        Op::ChangeDir(path) => change_dir::run(account, path),
        Op::List { path, form, hidden, written } => list::run(account, path, *form, *hidden, written.as_bytes()),
        Op::Facts { path, facts } => facts::run(account, path, *facts),
        Op::MakeDir(path, umask) => make_dir::run(account, path, *umask),
        Op::RemoveDir(path) => remove_dir::run(account, path),
        Op::Remove(path) => remove::run(account, path),
        Op::Rename { from, to } => rename::run(account, from, to),
        Op::SetModified(path, seconds) => set_times::run(account, path, None, *seconds),
        Op::SetMode(path, mode) => set_mode::run(account, path, *mode),
        Op::SetFacts { path, modified, mode } => set_facts::run(account, path, *modified, *mode),
        Op::SetTimes { path, accessed, modified } => set_times::run(account, path, Some(*accessed), *modified),
        Op::Space(path) => space::run(account, path),
        Op::Symlink { target, link } => symlink::run(account, target, link),
        Op::Copy { from, to, umask } => copy::run(account, from, to, *umask),
        Op::Publish { staged: number, sync } => {
            let replace = account.permissions.has(Permission::Overwrite);
            staged.publish(*number, replace, *sync)?;
            NOTHING
        }
        Op::Discard(number) => {
            staged.discard(*number);
            NOTHING
        }
    }
}

/// The answer of an operation that has nothing to say but that it is done.
const NOTHING: Outcome = Ok((Done::Nothing, Vec::new()));

/// The mode a new file or directory is made with: the kernel takes the account's umask from it as well.
fn new_mode(most: u32, umask: u16) -> Mode {
    Mode::from_raw_mode(most & !u32::from(umask))
}

/// Checks that a descriptor opened with `O_NONBLOCK` (so that no FIFO could hang us) is a regular file, and makes it
/// an ordinary one.
fn regular(file: &OwnedFd) -> Result<Stat, Why> {
    let stat = fstat(file).map_err(why)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(Why::IsDirectory),
        _ => return Err(Why::NotRegular),
    }
    fcntl_setfl(file, OFlags::empty()).map_err(why)?;
    Ok(stat)
}

/// A size as the kernel gives it, which is never negative.
fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn attributes(stat: &Stat) -> Attrs {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    };
    // 12 bits, so nothing is lost.
    Attrs { kind, size: size(stat), modified: stat.st_mtime, mode: (stat.st_mode & 0o7777) as u16 }
}
