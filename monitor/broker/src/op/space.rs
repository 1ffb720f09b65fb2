//! `Space` (AVBL): what statfs(2) says is free for users who are not root. Quotas are not asked.

use child_ipc::{link::worker_broker::Done, types::VirtPath};
use rustix::fs::fstatfs;

use super::Outcome;
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, path: &VirtPath) -> Outcome {
    let stat = account.root.look(path).and_then(fstatfs).map_err(why)?;
    let block = u64::try_from(stat.f_bsize).unwrap_or(0);
    Ok((Done::Space(stat.f_bavail.saturating_mul(block)), Vec::new()))
}
