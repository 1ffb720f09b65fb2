//! How much is measured: sizes, counts and time limits of one run.

use std::time::Duration;

/// One MiB in bytes.
pub const MIB: u64 = 1 << 20;

/// Sizes, counts and limits. `full` is what the promises are held against; `quick` only shows that everything works.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// True where the figures are for checking the harness only.
    pub quick: bool,
    /// Turns each server gets in each row.
    pub runs: usize,
    /// Bytes of the large file.
    pub big: u64,
    /// Parallel downloads, each of `part` bytes.
    pub parallel: usize,
    /// Bytes of each parallel download.
    pub part: u64,
    /// Small files a turn, each way.
    pub small: usize,
    /// Bytes of a small file.
    pub small_len: u64,
    /// How long a rate (logins, connections) is counted.
    pub window: Duration,
    /// Idle sessions are measured up to this many.
    pub idle_most: usize,
    /// Entries of the directory that is listed.
    pub entries: usize,
    /// NOOPs that are timed in a turn.
    pub noops: usize,
    /// Clients that come at once.
    pub crowd: usize,
    /// Bytes each of them moves, each way.
    pub crowd_len: u64,
    /// Connections that send nothing.
    pub silent: usize,
    /// Within this a single timed section must end.
    pub limit: Duration,
}

impl Plan {
    /// The run behind the promises: 1 GiB files, 1,000 small files, five turns.
    pub const fn full() -> Self {
        Self {
            quick: false,
            runs: 5,
            big: 1024 * MIB,
            parallel: 16,
            part: 64 * MIB,
            small: 1000,
            small_len: 16 << 10,
            window: Duration::from_secs(1),
            idle_most: 5000,
            entries: 10_000,
            noops: 1000,
            crowd: 300,
            crowd_len: 10 * MIB,
            silent: 10_000,
            limit: Duration::from_secs(60),
        }
    }

    /// A short run: 256 MiB files, 200 small files, two turns, up to 1,000 idle sessions and silent connections.
    pub const fn quick() -> Self {
        Self {
            quick: true,
            runs: 2,
            big: 256 * MIB,
            parallel: 16,
            part: 16 * MIB,
            small: 200,
            small_len: 16 << 10,
            window: Duration::from_millis(300),
            idle_most: 1000,
            entries: 10_000,
            noops: 200,
            crowd: 300,
            crowd_len: MIB,
            silent: 1000,
            limit: Duration::from_secs(20),
        }
    }
}
