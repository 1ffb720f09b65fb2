//! `RemoveDir` (RMD): an empty directory, never a link to one, never the root. What listings do not show (unfinished.rs) is not
//! to be in the way, if it was left behind.

use child_ipc::types::VirtPath;
use rustix::{
    fs::{AtFlags, unlinkat},
    io::Errno,
};

use super::{NOTHING, Outcome};
use crate::{account::Account, unfinished, why::why};

pub(super) fn run(account: &Account, path: &VirtPath) -> Outcome {
    let place = account.root.place(path)?;
    let remove = || unlinkat(&place.directory, place.name, AtFlags::REMOVEDIR);
    match remove() {
        // rmdir(2): either may be said.
        Err(Errno::NOTEMPTY | Errno::EXIST) if unfinished::clear(account, &place) => remove(),
        removed => removed,
    }
    .map_err(why)?;
    NOTHING
}
