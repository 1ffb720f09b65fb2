//! `Stat` (SIZE, MDTM): attributes of what a path leads to. A link that leads nowhere is `NotFound`.

use child_ipc::{link::worker_broker::Done, types::VirtPath};
use rustix::fs::fstat;

use super::{Outcome, attributes};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath) -> Outcome {
    let stat = account.root.look(path).and_then(fstat).map_err(why)?;
    Ok((Done::Stat(attributes(&stat)), Vec::new()))
}
