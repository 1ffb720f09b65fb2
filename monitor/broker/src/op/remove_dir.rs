//! `RemoveDir` (RMD): an empty directory, never a link to one, never the root.

use ipc::types::VirtPath;
use rustix::fs::{AtFlags, unlinkat};

use super::{NOTHING, Outcome};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath) -> Outcome {
    let place = account.root.place(path)?;
    unlinkat(&place.directory, place.name, AtFlags::REMOVEDIR).map_err(why)?;
    NOTHING
}
