//! The names of a directory: one buffer for all bytes, sixteen bytes beside it for each, sorted by their bytes.
//!
//! Names of one directory like to begin alike (`IMG_0001.jpg`), so what all have in common is not compared.

use std::{cmp::Ordering, ffi::CStr, ops::Range, os::fd::OwnedFd};

use child_ipc::link::worker_broker::Why;
use rustix::fs::{FileType, RawDir};

use super::pattern::Pattern;
use crate::{account::Account, unfinished, why::why};

/// Most names of one listing; a directory with more is refused as [`Why::Invalid`].
const MOST: usize = 1_000_000;

/// Most bytes of all names together, with a NUL behind each.
const MOST_BYTES: usize = 64 << 20;

/// What one getdents64(2) brings at most, in bytes.
const BATCH: usize = 32 * 1024;

/// Names in one buffer.
#[derive(Debug)]
pub(super) struct Names {
    bytes: Vec<u8>,
    entries: Vec<Packed>,
}

#[derive(Debug, Clone, Copy)]
struct Packed {
    /// The first eight bytes behind what all names begin with, most significant first, so that most comparisons end here.
    key: u64,
    start: u32,
    length: u16,
    kind: FileType,
}

/// One name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'n> {
    /// Its bytes.
    pub(super) name: &'n CStr,
    /// What it is, if the file system told without being asked for it.
    pub(super) kind: FileType,
}

impl Names {
    /// Reads all names but `.` and `..`, and those of uploads under way; those that begin with a dot only if `hidden`.
    pub(super) fn read(account: &Account, directory: &OwnedFd, hidden: bool) -> Result<Self, Why> {
        let mut names = Names { bytes: Vec::new(), entries: Vec::new() };
        let mut batch = Vec::with_capacity(BATCH);
        let mut reader = RawDir::new(directory, batch.spare_capacity_mut());
        while let Some(entry) = reader.next() {
            let entry = entry.map_err(why)?;
            let name = entry.file_name();
            let skipped = match name.to_bytes() {
                b"." | b".." => true,
                upload if unfinished::is_name(upload) => {
                    unfinished::tidy(account, directory, name);
                    true
                }
                other => !hidden && other.first() == Some(&b'.'),
            };
            if !skipped {
                names.add(name, entry.file_type())?;
            }
        }
        Ok(names)
    }

    fn add(&mut self, name: &CStr, kind: FileType) -> Result<(), Why> {
        let bytes = name.to_bytes_with_nul();
        if self.entries.len() >= MOST || self.bytes.len() + bytes.len() > MOST_BYTES {
            return Err(Why::Invalid);
        }
        let start = u32::try_from(self.bytes.len()).map_err(|_| Why::Invalid)?;
        let length = u16::try_from(bytes.len()).map_err(|_| Why::Invalid)?;
        self.bytes.extend_from_slice(bytes);
        self.entries.push(Packed { key: 0, start, length, kind });
        Ok(())
    }

    /// Keeps the names that a pattern matches.
    pub(super) fn matching(mut self, pattern: Pattern<'_>) -> Self {
        let Names { bytes, entries } = &mut self;
        entries.retain(|entry| matches!(entry.of(bytes), [name @ .., 0] if pattern.matches(name)));
        self
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sorts by bytes. A name that a changing directory gave twice is kept once.
    pub(super) fn sort(&mut self) {
        let Names { bytes, entries } = self;
        let common = common(bytes, entries);
        for entry in entries.iter_mut() {
            entry.key = key(&entry.of(bytes)[common..]);
        }
        entries.sort_unstable_by(|a, b| match a.key.cmp(&b.key) {
            Ordering::Equal => a.of(bytes).cmp(b.of(bytes)),
            order => order,
        });
        entries.dedup_by(|a, b| a.key == b.key && a.of(bytes) == b.of(bytes));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The names in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        self.part(0..self.len())
    }

    /// The names of these places in order, as far as there are any.
    pub(super) fn part(&self, places: Range<usize>) -> impl Iterator<Item = Entry<'_>> {
        let end = places.end.min(self.entries.len());
        self.entries.get(places.start..end).unwrap_or_default().iter().filter_map(|packed| {
            let name = CStr::from_bytes_with_nul(packed.of(&self.bytes)).ok()?;
            Some(Entry { name, kind: packed.kind })
        })
    }
}

impl Packed {
    /// The name with its NUL, in the buffer it was put into.
    fn of(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &bytes[start..start + usize::from(self.length)]
    }
}

/// How many bytes all names begin with in common.
fn common(bytes: &[u8], entries: &[Packed]) -> usize {
    let Some((first, rest)) = entries.split_first() else { return 0 };
    let first = first.of(bytes);
    rest.iter().fold(first.len(), |length, entry| {
        first[..length].iter().zip(entry.of(bytes)).take_while(|(a, b)| a == b).count()
    })
}

/// The first eight bytes; shorter names are filled up with the NUL that ends them.
fn key(name: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = name.len().min(8);
    first[..length].copy_from_slice(&name[..length]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_sorted_by_their_bytes_and_once() {
        let given: [&CStr; 9] = [c"long name 2", c"b", c"long name 10", c"B", c"\xff", c"a b", c"b", c"a", c"long nam"];
        // All of them, and those with a beginning in common; one; none.
        for begin in [&b""[..], b"l", b"long name", b"long name 2", b"none"] {
            let given = given.iter().copied().filter(|name| name.to_bytes().starts_with(begin));
            let mut names = Names { bytes: Vec::new(), entries: Vec::new() };
            for name in given.clone() {
                names.add(name, FileType::RegularFile).unwrap();
            }
            names.sort();
            let sorted: Vec<_> = names.iter().map(|e| e.name).collect();
            let mut expected: Vec<_> = given.collect();
            expected.sort();
            expected.dedup();
            assert_eq!(sorted, expected);
        }
    }

    #[test]
    fn a_name_costs_sixteen_bytes_beside_its_own() {
        assert_eq!(size_of::<Packed>(), 16);
    }
}
