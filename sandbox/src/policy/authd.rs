//! authd: alone with passwords and keys. Records in, records out, arithmetic between. No file, no socket of its own making.
//!
//! The user table and the keys come as sealed memfds, the public socket as a listener; all threads exist before the seal.

use libc::{F_DUPFD_CLOEXEC, F_GET_SEALS, F_GETFD, F_GETFL, F_SETFD, SHUT_WR};

use super::Test::{Null, OneOf, Without};
use super::{Row, arg, call, when};

/// Rows of authd.
pub const CALLS: &[Row] = &[
    call!(SYS_accept4, "authd/src/serve.rs: authd.sock, bound by the monitor"),
    call!(SYS_epoll_create1, "authd/src/serve.rs"),
    call!(SYS_epoll_ctl, "authd/src/serve.rs"),
    call!(SYS_epoll_pwait, "authd/src/serve.rs, as libc spells it on aarch64"),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_epoll_wait, "authd/src/serve.rs"),
    call!(SYS_eventfd2, "authd/src/serve.rs: an argon2 thread is done"),
    when!(
        SYS_fcntl,
        [arg(1, OneOf(&[F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_GET_SEALS, F_SETFD]))],
        "authd/src/users.rs: the table is sealed; authd/src/serve.rs: copies of descriptors"
    ),
    call!(SYS_mlock, "authd/src/verify.rs: passwords"),
    call!(SYS_munlock, "authd/src/verify.rs: passwords"),
    call!(SYS_pread64, "authd/src/users.rs: the table"),
    call!(SYS_recvfrom, "authd/src/serve.rs: sockets of std"),
    when!(
        SYS_sendto,
        [arg(3, Without(libc::MSG_FASTOPEN)), arg(4, Null)],
        "authd/src/serve.rs: sockets of std, to their peer only"
    ),
    when!(SYS_shutdown, [arg(1, OneOf(&[SHUT_WR]))], "authd/src/serve.rs ends an outside client"),
];
const _: () = assert!(!CALLS.is_empty());
