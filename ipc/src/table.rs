//! Tables too long for a record: a sealed memfd of records, each postcard-encoded behind its length in four bytes, least
//! significant first.
//!
//! Whoever receives one checks the seals, so that nothing changes while it is read, and then every record as one of a link.
//! Not here: who writes them (monitor/config/src/table.rs); authd's own reader, which wipes what it read (authd/src/users.rs).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{SealFlags, fcntl_get_seals, fstat};

use crate::{Record, wire};

/// Longest table in bytes.
pub const MAX_BYTES: u64 = 32 << 20;

/// The seals of a table.
pub const SEALS: SealFlags = SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// Reads a table of at most `most` records, whole. The error says what is wrong with it.
pub fn read<R: Record>(memfd: OwnedFd, most: usize) -> io::Result<Vec<R>> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    if !fcntl_get_seals(memfd.as_fd()).is_ok_and(|seals| seals.contains(SEALS)) {
        return Err(wrong("a table that is not sealed"));
    }
    let length = u64::try_from(fstat(&memfd)?.st_size).unwrap_or(u64::MAX);
    let length =
        usize::try_from(length).ok().filter(|_| length <= MAX_BYTES).ok_or_else(|| wrong("a table too long"))?;
    let mut table = vec![0; length];
    File::from(memfd).read_exact_at(&mut table, 0)?;
    let mut records = Vec::new();
    let mut rest = table.as_slice();
    while !rest.is_empty() {
        let cut = || wrong("a table cut short");
        let (length, behind) = rest.split_first_chunk().ok_or_else(cut)?;
        let (record, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
        if records.len() == most {
            return Err(wrong("a table of too many records"));
        }
        records.push(wire::decode(record).map_err(io::Error::other)?);
        rest = behind;
    }
    Ok(records)
}
