//! The monitor: starts children, binds sockets, opens configuration and account roots. Every child is born under its filter.
//!
//! So its rows are long: program start-up, `std::process`, and every step of confinement. What it leaves out is what makes a
//! kernel dangerous: ptrace, process_vm_*, bpf, perf_event_open, io_uring, userfaultfd, keyctl, modules, kexec, reboot, swap,
//! clocks, quotas, personality, open_by_handle_at, setns, acct.
//! Rows with fewer conditions than a row of the same name in common.rs replace it here; rows equal to one there are not repeated.

use super::{Row, call};

/// Rows of the monitor beside common.rs and inherited.rs.
pub const CALLS: &[Row] = &[
    call!(SYS_bind, "monitor/src/listen.rs; monitor/src/control.rs"),
    call!(SYS_capget, "sandbox/src/creds.rs"),
    call!(SYS_capset, "sandbox/src/creds.rs"),
    call!(SYS_chdir, "sandbox/child/src/mounts.rs"),
    call!(SYS_clone, "monitor/src/spawn.rs"),
    call!(SYS_clone3, "libc: threads and posix_spawn"),
    call!(SYS_connect, "monitor/src/answer/connect_back.rs connects back to a client"),
    call!(SYS_dup, "std: descriptors of a child"),
    call!(SYS_dup3, "sandbox/child/src/link.rs"),
    call!(SYS_eventfd2, "worker/src/helpers.rs, authd/src/pool.rs: bells of threads, made before the seal"),
    call!(SYS_execve, "monitor/src/spawn.rs"),
    call!(SYS_faccessat, "libc: access"),
    call!(SYS_faccessat2, "libc: access"),
    call!(SYS_fallocate, "monitor/src/ledger.rs clears a dead worker's region"),
    call!(SYS_fchdir, "libc: directories of a child"),
    call!(SYS_fcntl, "monitor/src/spawn.rs: any command, pipes and locks too"),
    call!(SYS_getcwd, "std: paths given on the command line"),
    call!(SYS_getegid, "libc: start-up"),
    call!(SYS_geteuid, "monitor/src/config.rs"),
    call!(SYS_getgid, "libc: start-up"),
    call!(SYS_getgroups, "sandbox/child/src/ids.rs"),
    call!(SYS_getppid, "libc: start-up"),
    call!(SYS_getpriority, "libc: nice, setpriority"),
    call!(SYS_getresgid, "sandbox/child/src/ids.rs"),
    call!(SYS_getresuid, "sandbox/child/src/ids.rs"),
    call!(SYS_getuid, "libc: start-up"),
    call!(SYS_ioctl, "libc: isatty"),
    call!(SYS_kill, "monitor/src/spawn.rs"),
    call!(SYS_landlock_add_rule, "sandbox/child/src/landlock.rs"),
    call!(SYS_landlock_create_ruleset, "sandbox/child/src/landlock.rs"),
    call!(SYS_landlock_restrict_self, "sandbox/child/src/landlock.rs"),
    call!(SYS_listen, "monitor/src/listen.rs"),
    call!(SYS_mmap, "libc: ld.so maps programs"),
    call!(SYS_mount, "sandbox/child/src/mounts.rs"),
    call!(SYS_mount_setattr, "sandbox/src/creds.rs"),
    call!(SYS_move_mount, "sandbox/child/src/mounts.rs"),
    call!(SYS_mprotect, "libc: ld.so relocates programs"),
    call!(SYS_open_tree, "sandbox/child/src/mounts.rs"),
    call!(SYS_openat, "monitor/src/config.rs; monitor/broker/src/resolve.rs: account roots"),
    call!(SYS_pivot_root, "sandbox/child/src/mounts.rs"),
    call!(SYS_prctl, "sandbox/src/creds.rs: every set of capabilities"),
    call!(SYS_prlimit64, "monitor/src/start.rs; sandbox/src/creds.rs"),
    call!(SYS_pselect6, "libc: select"),
    call!(SYS_rt_sigsuspend, "libc: sigsuspend"),
    call!(SYS_sched_getparam, "libc: pthread_getattr_np"),
    call!(SYS_sched_getscheduler, "libc: pthread_getattr_np"),
    call!(SYS_seccomp, "sandbox/src/seccomp.rs"),
    call!(SYS_sendto, "monitor/src/notify.rs: sd_notify(3)"),
    call!(SYS_set_tid_address, "libc: every child begins"),
    call!(SYS_setgid, "std: process::Command"),
    call!(SYS_setgroups, "sandbox/child/src/ids.rs"),
    call!(SYS_setpriority, "authd/src/pool.rs: threads of low priority"),
    call!(SYS_setresgid, "sandbox/child/src/ids.rs"),
    call!(SYS_setresuid, "sandbox/child/src/ids.rs"),
    call!(SYS_setsockopt, "monitor/src/listen.rs"),
    call!(SYS_setuid, "sandbox/child/src/ids.rs: finds no way back"),
    call!(SYS_signalfd4, "monitor/src/start.rs: signals"),
    call!(SYS_socket, "monitor/src/listen.rs"),
    call!(SYS_socketpair, "ipc/src/channel.rs: links"),
    call!(SYS_sysinfo, "libc: qsort"),
    call!(SYS_tgkill, "libc: abort, and the C library's raise in every child"),
    call!(SYS_umask, "monitor/src/start.rs; monitor/broker/src/lib.rs"),
    call!(SYS_umount2, "sandbox/child/src/mounts.rs"),
    call!(SYS_uname, "libc: start-up"),
    call!(SYS_unshare, "sandbox/child/src/mounts.rs"),
    call!(SYS_wait4, "monitor/src/reap.rs"),
    call!(SYS_waitid, "monitor/src/reap.rs"),
];

/// Calls that newer architectures no longer have, and that libc still makes where they exist.
#[cfg(target_arch = "x86_64")]
pub const OLD: &[Row] = &[
    call!(SYS_access, "libc: ld.so looks for ld.so.preload in every child"),
    call!(SYS_arch_prctl, "libc: every child sets its thread pointer"),
    call!(SYS_chmod, "monitor/src/control.rs: the admin's socket"),
    call!(SYS_dup2, "libc: posix_spawn places descriptor 0"),
    call!(SYS_fork, "std: process::Command"),
    call!(SYS_lstat, "std: symlink_metadata"),
    call!(SYS_mkdir, "monitor/src/control.rs: /run/caisson"),
    call!(SYS_open, "libc: ld.so"),
    call!(SYS_pipe, "libc: popen"),
    call!(SYS_readlink, "std: current_exe finds the programs of the children"),
    call!(SYS_stat, "libc: ld.so"),
    call!(SYS_unlink, "monitor/src/control.rs: a stale socket"),
    call!(SYS_vfork, "std: process::Command"),
];
/// There are none here.
#[cfg(not(target_arch = "x86_64"))]
pub const OLD: &[Row] = &[];
const _: () = assert!(!CALLS.is_empty());
