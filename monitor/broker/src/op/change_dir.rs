//! `ChangeDir` (CWD): whether a directory is there and may be entered.

use child_ipc::types::VirtPath;

use super::{NOTHING, Outcome};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath) -> Outcome {
    account.root.enter(path).map_err(why)?;
    NOTHING
}
