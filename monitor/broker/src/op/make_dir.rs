//! `MakeDir` (MKD): mode 0777 less the mask of the process.

use ipc::{link::worker_broker::Why, types::VirtPath};
use rustix::fs::{Mode, mkdirat};

use super::{NOTHING, Outcome};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath) -> Outcome {
    if path.is_root() {
        return Err(Why::Exists);
    }
    let place = account.root.place(path)?;
    mkdirat(&place.directory, place.name, Mode::from_raw_mode(0o777)).map_err(why)?;
    NOTHING
}
