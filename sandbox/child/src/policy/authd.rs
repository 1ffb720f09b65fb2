//! authd: alone with passwords and keys. Records in, records out, arithmetic between. No file, no socket of its own making.
//!
//! The user table comes as a sealed memfd; all threads, and what wakes the loop, exist before the seal.

use libc::{F_ADD_SEALS, F_DUPFD_CLOEXEC, F_GET_SEALS, F_GETFD};

use super::Test::OneOf;
use super::{Row, arg, call, when};

/// Rows of authd.
pub const CALLS: &[Row] = &[
    when!(
        SYS_fcntl,
        [arg(1, OneOf(&[F_ADD_SEALS, F_DUPFD_CLOEXEC, F_GETFD, F_GET_SEALS]))],
        "authd/src/users.rs: the table is sealed; authd/src/keys.rs seals one, authd/src/serve.rs copies it for every worker; std: a debug build sees that what it drops is open"
    ),
    call!(SYS_memfd_create, "authd/src/keys.rs: the table of certificates, which workers are given"),
    call!(SYS_pread64, "authd/src/users.rs: the table; authd/src/keys.rs: files of certificates and keys"),
];
const _: () = assert!(!CALLS.is_empty());
