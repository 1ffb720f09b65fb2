//! `SetFacts` (MFF): mode and modification time in one step. The mode comes first: it is the one that can be refused
//! for its value, and then nothing has changed.

use child_ipc::types::VirtPath;

use super::{Outcome, set_mode, set_times, stat};
use crate::account::Account;

pub(super) fn run(account: &Account, path: &VirtPath, modified: Option<i64>, mode: Option<u16>) -> Outcome {
    if let Some(mode) = mode {
        set_mode::run(account, path, mode)?;
    }
    match modified {
        Some(seconds) => set_times::run(account, path, None, seconds),
        None => stat::run(account, path),
    }
}
