//! What the C library and the Rust runtime need in every process: memory, threads that exist, time, random numbers, a way to end.
//!
//! Nothing here opens, creates or names anything outside the process.

use libc::{PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_SET_NAME, PROT_EXEC};

use super::Test::{OneOf, OwnPid, Without};
use super::{Row, arg, call, when};

/// Rows of every role.
pub const CALLS: &[Row] = &[
    call!(SYS_brk, "libc: malloc"),
    call!(SYS_clock_gettime, "std: Instant::now where the vDSO has no clock"),
    call!(SYS_clock_nanosleep, "std: thread::sleep"),
    call!(SYS_close, "std: drops a descriptor"),
    call!(SYS_exit, "libc: a thread ends"),
    call!(SYS_exit_group, "libc: exit"),
    call!(SYS_fstat, "libc: size and kind of a descriptor it holds; newfstatat and statx would take paths"),
    call!(SYS_futex, "std: locks, channels, parking"),
    call!(SYS_getpid, "libc: abort"),
    call!(SYS_getrandom, "std: keys of hash maps"),
    call!(SYS_getsockopt, "ipc/src/channel.rs: a descriptor is a link, or is not"),
    call!(SYS_gettid, "libc: abort"),
    call!(SYS_lseek, "std: File::stream_position"),
    call!(SYS_madvise, "libc: malloc gives pages back, a thread its stack"),
    when!(SYS_mmap, [arg(2, Without(PROT_EXEC))], "libc: malloc; never executable"),
    when!(SYS_mprotect, [arg(2, Without(PROT_EXEC))], "libc: malloc grows a thread's arena; never executable"),
    call!(SYS_mremap, "libc: realloc"),
    call!(SYS_munmap, "libc: free"),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_poll, "ipc/src/channel.rs waits for one record"),
    call!(SYS_ppoll, "ipc/src/channel.rs waits for one record"),
    when!(
        SYS_prctl,
        [arg(0, OneOf(&[PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_SET_NAME]))],
        "sandbox/src/seccomp.rs verifies; std: a thread made before the seal names itself"
    ),
    call!(SYS_read, "std: File::read"),
    call!(SYS_recvmsg, "ipc/src/channel.rs"),
    call!(SYS_restart_syscall, "libc: a sleep goes on after a stop"),
    call!(SYS_rseq, "libc: a thread begins"),
    call!(SYS_rt_sigaction, "std: a stack overflow restores the default and dies of it"),
    call!(SYS_rt_sigprocmask, "libc: abort, a thread begins and ends"),
    call!(SYS_rt_sigreturn, "libc: the end of a signal handler"),
    call!(SYS_sched_getaffinity, "libc: pthread_getattr_np when a thread begins"),
    call!(SYS_sched_yield, "std: thread::yield_now, contended channels"),
    when!(SYS_sendmsg, [arg(2, Without(libc::MSG_FASTOPEN))], "ipc/src/channel.rs; MSG_FASTOPEN would connect"),
    call!(SYS_set_robust_list, "libc: a thread begins"),
    call!(SYS_sigaltstack, "std: a thread begins and ends"),
    when!(SYS_tgkill, [arg(0, OwnPid)], "libc: abort, and nobody else"),
    call!(SYS_write, "std: the panic message"),
    call!(SYS_writev, "std: write_vectored"),
];
const _: () = assert!(!CALLS.is_empty());
