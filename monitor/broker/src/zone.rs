//! Local time for listings: how far the zone of `listing_time` is from UTC, at any time.
//!
//! Once the process is confined there is no such file any more, so its bytes are read before. What they mean is looked at
//! afterwards. Reads from: a file of the system that caisson.toml(5) names.
//! Not here: dates (listing/date.rs), and MLSD, which speaks UTC in any case.

use std::{fs::File, io, io::Read, path::Path};

use jiff::{Timestamp, tz::TimeZone};
use rustix::fs::{Mode, OFlags, open};

/// Longest description of a zone read, in bytes; those of tzdata are shorter than 4 KiB.
const LONGEST: u64 = 64 << 10;

/// A time zone.
#[derive(Debug)]
pub(crate) struct Zone(TimeZone);

/// An offset and the times it holds for. UTC for ever is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Seconds east of UTC.
    pub(crate) seconds: i64,
    /// The first time it holds for, UTC seconds since 1970.
    pub(crate) from: i64,
    /// The first time after `from` it no longer holds for.
    pub(crate) until: i64,
}

/// Call before the process is confined. Waits for nobody: a FIFO would.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() || found.len() > LONGEST {
        return Err(io::Error::other(format!("not a regular file of at most {LONGEST} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Zone {
    /// From what [`read`] gave.
    pub(crate) fn new(tzfile: &[u8]) -> Result<Self, jiff::Error> {
        TimeZone::tzif("listing_time", tzfile).map(Zone)
    }

    /// The offset at a time, UTC seconds since 1970. Times beyond the years that jiff knows (-9999 to 9999) have that of the
    /// nearest it knows.
    pub(crate) fn at(&self, time: i64) -> Offset {
        let (first, last) = (Timestamp::MIN.as_second() + 1, Timestamp::MAX.as_second() - 1);
        let second = |time: i64| Timestamp::from_second(time.clamp(first, last)).unwrap_or_default();
        let before = self.0.preceding(second(time.saturating_add(1))).next();
        let after = self.0.following(second(time)).next();
        Offset {
            seconds: self.0.to_offset(second(time)).seconds().into(),
            from: before.map_or(i64::MIN, |change| change.timestamp().as_second()),
            until: after.map_or(i64::MAX, |change| change.timestamp().as_second()),
        }
    }
}

impl Default for Offset {
    fn default() -> Self {
        Offset { seconds: 0, from: i64::MIN, until: i64::MAX }
    }
}
