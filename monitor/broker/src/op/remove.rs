//! `Remove` (DELE): anything but a directory; of a link, the link itself.

use child_ipc::types::VirtPath;
use rustix::fs::{AtFlags, unlinkat};

use super::{NOTHING, Outcome};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath) -> Outcome {
    let place = account.root.place(path)?;
    unlinkat(&place.directory, place.name, AtFlags::empty()).map_err(why)?;
    NOTHING
}
