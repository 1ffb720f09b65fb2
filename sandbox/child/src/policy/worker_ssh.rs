//! What the `ssh` worker needs beside the `ftp` worker's rows: russh locks the pages of its session keys.

use super::{Row, call};

/// Rows of the `ssh` worker alone.
pub const CALLS: &[Row] = &[
    call!(SYS_mlock, "libc: russh locks the pages of session keys"),
    call!(SYS_munlock, "libc: russh locks the pages of session keys"),
];
const _: () = assert!(!CALLS.is_empty());
