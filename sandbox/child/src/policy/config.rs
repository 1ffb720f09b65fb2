//! caisson-config: reads the machine's files, and talks to the name service by sockets of `AF_UNIX`. It changes nothing.
//!
//! Modules of the name service (files, systemd, sss) are loaded before the seal and make these calls for every name that is
//! looked up. One that needs another ends the process: the monitor says so, and a uid as a number needs no module.

use libc::{AF_UNIX, F_ADD_SEALS, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_SETFD, F_SETFL, O_CREAT, O_RDWR, O_WRONLY};
use libc::{SO_PASSCRED, SO_RCVBUF, SO_SNDBUF, SO_TIMESTAMP, SOL_SOCKET};

use super::Test::{OneOf, Without};
use super::{Row, arg, call, when};

/// Opens nothing that could be written.
const READS: libc::c_int = O_WRONLY | O_RDWR | O_CREAT;

/// Rows of caisson-config.
pub const CALLS: &[Row] = &[
    #[cfg(target_arch = "x86_64")]
    when!(SYS_access, [arg(1, Without(libc::W_OK))], "libc: looks for files"),
    call!(SYS_connect, "libc: sockets of the name service"),
    call!(SYS_epoll_create1, "libc: nss-systemd waits"),
    call!(SYS_epoll_ctl, "libc: nss-systemd waits"),
    call!(SYS_epoll_pwait, "libc: nss-systemd waits"),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_epoll_wait, "libc: nss-systemd waits"),
    when!(SYS_faccessat, [arg(2, Without(libc::W_OK))], "libc: looks for files"),
    when!(SYS_faccessat2, [arg(2, Without(libc::W_OK))], "libc: looks for files"),
    when!(
        SYS_fcntl,
        [arg(1, OneOf(&[F_ADD_SEALS, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_SETFD, F_SETFL]))],
        "monitor/config/src/table.rs seals; libc: descriptors of the name service"
    ),
    call!(SYS_fstatfs, "libc: nss-systemd looks at /run"),
    call!(SYS_getdents64, "libc: directories of the name service"),
    call!(SYS_getegid, "libc: nss-systemd"),
    call!(SYS_geteuid, "monitor/config/src/check.rs"),
    call!(SYS_getgid, "libc: nss-systemd"),
    call!(SYS_getpeername, "libc: nss-sss"),
    call!(SYS_getppid, "libc: nss-sss"),
    call!(SYS_getsockname, "libc: nss-systemd"),
    call!(SYS_getuid, "libc: nss-systemd"),
    call!(SYS_memfd_create, "monitor/config/src/table.rs"),
    call!(SYS_newfstatat, "libc: nsswitch.conf may have changed"),
    #[cfg(target_arch = "x86_64")]
    when!(SYS_open, [arg(1, Without(READS))], "libc: reads files"),
    when!(SYS_openat, [arg(2, Without(READS))], "libc: reads files; std: available_parallelism asks cgroups"),
    call!(SYS_pread64, "libc: reads files"),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_readlink, "libc: nss-systemd"),
    call!(SYS_readlinkat, "libc: nss-systemd"),
    call!(SYS_recvfrom, "libc: sockets of the name service"),
    when!(SYS_sendto, [arg(3, Without(libc::MSG_FASTOPEN))], "libc: sockets of the name service"),
    when!(
        SYS_setsockopt,
        [arg(1, OneOf(&[SOL_SOCKET])), arg(2, OneOf(&[SO_PASSCRED, SO_RCVBUF, SO_SNDBUF, SO_TIMESTAMP]))],
        "libc: nss-systemd"
    ),
    when!(SYS_socket, [arg(0, OneOf(&[AF_UNIX]))], "libc: sockets of the name service, on this machine alone"),
    call!(SYS_statx, "std: reads a file to its end"),
    call!(SYS_timerfd_create, "libc: nss-systemd waits"),
    call!(SYS_timerfd_settime, "libc: nss-systemd waits"),
    call!(SYS_uname, "libc: nss-systemd"),
];
const _: () = assert!(!CALLS.is_empty());
