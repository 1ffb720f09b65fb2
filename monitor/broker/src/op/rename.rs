//! `Rename` (RNFR + RNTO): of a link, the link itself.
//!
//! With permission to overwrite this is rename(2): a file replaces a file, a directory only an empty directory, at once.
//! Without, `RENAME_NOREPLACE` leaves what is there alone whatever races; file systems that do not know it (NFS) answer
//! EINVAL, and the rename is refused.

use child_ipc::types::{Permission, VirtPath};
use rustix::fs::{RenameFlags, renameat_with};

use super::{NOTHING, Outcome};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, from: &VirtPath, to: &VirtPath) -> Outcome {
    let replace = account.permissions.has(Permission::Overwrite);
    let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    let (from, to) = (account.root.place(from)?, account.root.place(to)?);
    renameat_with(&from.directory, from.name, &to.directory, to.name, flags).map_err(why)?;
    NOTHING
}
