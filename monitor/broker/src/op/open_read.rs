//! `OpenRead` (RETR): a regular file, read-only.

use child_ipc::{
    link::worker_broker::{Done, Opened},
    types::VirtPath,
};
use rustix::fs::{Mode, OFlags};

use super::{Outcome, regular, size};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath) -> Outcome {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = account.root.open(path.as_bytes(), flags, Mode::empty()).map_err(why)?;
    let stat = regular(&file)?;
    let size = size(&stat);
    let storage = account.home.to_read(&file, &stat);
    Ok((Done::Opened(Opened { size, created: false, chosen: None, storage, staged: None }), vec![file]))
}
