//! `Copy` (SITE CPFR + CPTO): opens both files; the worker moves the bytes, a share a turn, so that nobody waits here.
//!
//! A file is never emptied before it is known to be another one than the source, by whatever names they go.

use child_ipc::{
    link::worker_broker::{Done, Why},
    types::VirtPath,
};
use rustix::fs::{Mode, OFlags, ftruncate};

use super::{Outcome, open_write, regular, size};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, from: &VirtPath, to: &VirtPath, umask: u16) -> Outcome {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let source = account.root.open(from.as_bytes(), flags, Mode::empty()).map_err(why)?;
    let stat = regular(&source)?;
    let (copy, created) = open_write::open_or_make(account, to, umask)?;
    let there = regular(&copy)?;
    if (stat.st_dev, stat.st_ino) == (there.st_dev, there.st_ino) {
        return Err(Why::Invalid);
    }
    if !created {
        ftruncate(&copy, 0).map_err(why)?;
    }
    Ok((Done::Copying { bytes: size(&stat), devices: (stat.st_dev, there.st_dev) }, vec![source, copy]))
}
