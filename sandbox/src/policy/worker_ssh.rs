//! What the `ssh` worker needs beside the `ftp` worker's rows: russh locks the pages of its session keys.

use super::{Row, call};

/// Rows of the `ssh` worker alone.
pub const CALLS: &[Row] = &[
    call!(SYS_mlock, "worker/src/ssh: keys of russh sessions"),
    call!(SYS_munlock, "worker/src/ssh: keys of russh sessions"),
];
const _: () = assert!(!CALLS.is_empty());
