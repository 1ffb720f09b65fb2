//! `Facts` (MLST): one line about the path itself, with the whole path as the name (RFC 3659 7.3.1).

use child_ipc::{
    link::worker_broker::{Done, Facts, Why},
    types::{Blob, VirtPath},
};

use super::Outcome;
use crate::{account::Account, listing};

pub(super) fn run(account: &Account, path: &VirtPath, facts: Facts) -> Outcome {
    let line = listing::facts_of(account, path, facts)?;
    Ok((Done::Line(Blob::new(&line).map_err(|_| Why::Invalid)?), Vec::new()))
}
