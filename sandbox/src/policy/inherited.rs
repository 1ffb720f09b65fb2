//! What only children call, who are born under the monitor's filter: a call is on this list because it is on one of theirs,
//! where its reason stands.
//!
//! Conditions are those of the children where all have the same; a child's own filter says the rest.

use libc::{LOCK_EX, LOCK_NB};

use super::Test::OneOf;
use super::{Row, arg, call, when};

/// Rows the monitor has for its children's sake.
pub const CALLS: &[Row] = &[
    call!(SYS_accept4, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_copy_file_range, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_epoll_create1, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_epoll_ctl, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_epoll_pwait, "sandbox/child/src/policy/worker_ftp.rs"),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_epoll_wait, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_fadvise64, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_fchmod, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_fchmodat, "sandbox/child/src/policy/broker.rs"),
    when!(SYS_flock, [arg(1, OneOf(&[LOCK_EX | LOCK_NB]))], "sandbox/child/src/policy/broker.rs"),
    call!(SYS_fstatfs, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_fsync, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_ftruncate, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_getdents64, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_getpeername, "sandbox/child/src/policy/config.rs"),
    call!(SYS_getsockname, "sandbox/child/src/policy/config.rs"),
    when!(SYS_linkat, [arg(4, OneOf(&[0]))], "sandbox/child/src/policy/broker.rs"),
    call!(SYS_memfd_create, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_mkdirat, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_mlock, "sandbox/child/src/policy/worker_ssh.rs"),
    call!(SYS_munlock, "sandbox/child/src/policy/worker_ssh.rs"),
    call!(SYS_newfstatat, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_openat2, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_pipe2, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_pread64, "sandbox/child/src/policy/authd.rs"),
    call!(SYS_preadv2, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_pwrite64, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_readlinkat, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_recvfrom, "sandbox/child/src/policy/config.rs"),
    call!(SYS_renameat, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_renameat2, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_sendfile, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_shutdown, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_splice, "sandbox/child/src/policy/worker_ftp.rs"),
    call!(SYS_statx, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_symlinkat, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_timerfd_create, "sandbox/child/src/policy/config.rs"),
    call!(SYS_timerfd_settime, "sandbox/child/src/policy/config.rs"),
    call!(SYS_unlinkat, "sandbox/child/src/policy/broker.rs"),
    call!(SYS_utimensat, "sandbox/child/src/policy/broker.rs"),
];
const _: () = assert!(!CALLS.is_empty());
