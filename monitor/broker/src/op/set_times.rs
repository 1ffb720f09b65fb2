//! `SetModified` (MFMT), `SetTimes` (SITE UTIME): the times of a file or directory; one that is not given stays.

use child_ipc::{
    link::worker_broker::{Done, Why},
    types::VirtPath,
};
use rustix::fs::{AtFlags, FileType, Timespec, Timestamps, UTIME_OMIT, fstat, utimensat};

use super::{Outcome, attributes};
use crate::{
    account::{Account, ITSELF},
    why::why,
};

pub(super) fn run(account: &Account, path: &VirtPath, accessed: Option<i64>, modified: i64) -> Outcome {
    let file = account.root.look(path).map_err(why)?;
    match FileType::from_raw_mode(fstat(&file).map_err(why)?.st_mode) {
        FileType::RegularFile | FileType::Directory => {}
        _ => return Err(Why::NotRegular),
    }
    let unchanged = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps {
        last_access: accessed.map_or(unchanged, |tv_sec| Timespec { tv_sec, tv_nsec: 0 }),
        last_modification: Timespec { tv_sec: modified, tv_nsec: 0 },
    };
    // Of the descriptor, not of the name: the name may lead elsewhere by now.
    utimensat(&file, ITSELF, &times, AtFlags::EMPTY_PATH).map_err(why)?;
    let stat = fstat(&file).map_err(why)?;
    Ok((Done::Stat(attributes(&stat)), Vec::new()))
}
