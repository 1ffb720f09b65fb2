//! The worker: an event loop over client sockets and descriptors it was handed. No path, no new socket, no program, no process.
//!
//! Left out on purpose, for Landlock does not refuse them on descriptors a worker holds: fchmod, fchown, fsetxattr, flock,
//! fchdir, getdents64, and all calls that take a path. A worker's listening sockets are shared with the other workers, so
//! shutdown(2) closes sending only (`SHUT_RD` would end the listener for everybody), setsockopt(2) corks and uncorks, and
//! fcntl(2) cannot make it block (`O_NONBLOCK` belongs to the open file, not to the descriptor).

use libc::{
    F_DUPFD_CLOEXEC, F_GET_SEALS, F_GETFD, F_GETFL, F_SETFD, F_SETPIPE_SZ, IPPROTO_TCP, MSG_FASTOPEN, SHUT_WR,
    TCP_CORK, TCP_NODELAY,
};

use super::Test::{Null, OneOf, Without};
use super::{Row, arg, call, when};

/// Rows of both worker roles.
pub const CALLS: &[Row] = &[
    call!(SYS_accept4, "worker/src/event.rs accepts on the monitor's listeners"),
    call!(SYS_copy_file_range, "worker/src/transfer/job.rs copies a file, both ends handed over by a broker"),
    call!(SYS_epoll_create1, "worker/src/event.rs"),
    call!(SYS_epoll_ctl, "worker/src/event.rs"),
    call!(SYS_epoll_pwait, "worker/src/event.rs, as libc spells it on aarch64"),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_epoll_wait, "worker/src/event.rs"),
    call!(SYS_fadvise64, "worker/src/transfer/mod.rs: a helper thread announces what it will read"),
    when!(
        SYS_fcntl,
        [arg(1, OneOf(&[F_DUPFD_CLOEXEC, F_GET_SEALS, F_GETFD, F_GETFL, F_SETFD, F_SETPIPE_SZ]))],
        "worker/src/event.rs: copies of descriptors; worker/src/transfer/splice.rs: wide pipes; worker/src/tls/keys.rs: the table is sealed"
    ),
    call!(SYS_fsync, "worker/src/transfer/mod.rs: a helper thread ends an upload, where that is set"),
    call!(
        SYS_ftruncate,
        "worker/src/transfer/mod.rs cuts a file that a broker opened for writing, behind a TLS handshake"
    ),
    call!(SYS_getpeername, "worker/src/session.rs"),
    call!(SYS_getsockname, "worker/src/session.rs"),
    call!(SYS_pipe2, "worker/src/transfer/splice.rs"),
    call!(SYS_pread64, "worker/src/transfer/pooled.rs"),
    call!(SYS_preadv2, "worker/src/transfer/mod.rs asks whether data is in the page cache"),
    call!(SYS_pwrite64, "worker/src/ledger.rs"),
    call!(SYS_recvfrom, "worker/src/session.rs"),
    call!(SYS_sendfile, "worker/src/transfer/sendfile.rs"),
    when!(
        SYS_sendto,
        [arg(3, Without(MSG_FASTOPEN)), arg(4, Null)],
        "worker/src/session.rs; an address or MSG_FASTOPEN would connect"
    ),
    when!(
        SYS_setsockopt,
        [arg(1, OneOf(&[IPPROTO_TCP])), arg(2, OneOf(&[TCP_CORK, TCP_NODELAY]))],
        "worker/src/transfer/sendfile.rs corks; others would make a shared listener deaf"
    ),
    when!(SYS_shutdown, [arg(1, OneOf(&[SHUT_WR]))], "worker/src/session.rs ends a connection; never a listener"),
    call!(SYS_splice, "worker/src/transfer/splice.rs"),
];
const _: () = assert!(!CALLS.is_empty());
