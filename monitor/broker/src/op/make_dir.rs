//! `MakeDir` (MKD): mode 0777 less the umask of the account and that of the session.

use child_ipc::{link::worker_broker::Why, types::VirtPath};
use rustix::fs::mkdirat;

use super::{NOTHING, Outcome, new_mode};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath, umask: u16) -> Outcome {
    if path.is_root() {
        return Err(Why::Exists);
    }
    let place = account.root.place(path)?;
    mkdirat(&place.directory, place.name, new_mode(0o777, umask)).map_err(why)?;
    NOTHING
}
