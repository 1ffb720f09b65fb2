//! Forbidden acts: what a process that was taken over would try. For tests/refuses.rs, which names them, and for this program,
//! which performs them.
//!
//! Each is one bare system call, harmless where it succeeds: it changes nothing outside the process but the files it is given.
//! Run each in a process of its own, for most of them end it. Run unconfined, each returns, and most succeed:
//! that is how a test knows that the sandbox was what stopped it. Part of no program of the daemon.
#![allow(dead_code, reason = "one side names what the other performs")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use child_sandbox::Role;
use libc::{AT_FDCWD, c_int, c_long};

/// What a process that tries is given to try it on.
#[derive(Debug)]
pub struct Held<'a> {
    /// A regular file, open for reading only.
    file: BorrowedFd<'a>,
    /// A directory, open for reading, that holds a file named `file`.
    directory: BorrowedFd<'a>,
    /// A listening TCP socket.
    listener: BorrowedFd<'a>,
    /// The file once more, by the way that would open it for writing.
    reopened: CString,
}

impl<'a> Held<'a> {
    /// A read-only file, a directory that holds a file named `file`, and a listening TCP socket.
    #[must_use]
    pub fn new(file: BorrowedFd<'a>, directory: BorrowedFd<'a>, listener: BorrowedFd<'a>) -> Self {
        let reopened = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
        Held { file, directory, listener, reopened }
    }
}

/// What must become of a confined process that tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It dies of `SIGSYS`.
    Killed,
    /// The call fails.
    Refused,
}

/// What becomes of a process that tries unconfined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// The call succeeds.
    Succeeds,
    /// It succeeds as root.
    SucceedsAsRoot,
    /// It comes back, with an error (made so, or because the machine may not have it).
    Returns,
}

/// Who must be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Everybody,
    Children,
    WithoutFiles,
    Broker,
}

/// One forbidden act.
#[derive(Debug)]
pub struct Attempt {
    /// What is tried, in a few words; unique.
    pub name: &'static str,
    /// What becomes of it without a sandbox.
    pub alone: Alone,
    who: Who,
    number: c_long,
    with: fn(&Held<'_>, c_long) -> [c_long; 6],
}

impl Attempt {
    /// Tries it. Confined, this usually does not return.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn perform(&self, held: &Held<'_>) -> io::Result<()> {
        perform(self, held)
    }

    /// What must become of a process that tries it in a role it was listed for.
    #[must_use]
    pub fn expected(&self) -> Expected {
        match self.who {
            Who::Broker => Expected::Refused,
            _ => Expected::Killed,
        }
    }

    /// The six arguments; `scratch` is zeroed memory of 512 bytes that the kernel may write to.
    fn arguments(&self, held: &Held<'_>, scratch: c_long) -> [c_long; 6] {
        (self.with)(held, scratch)
    }
}

/// Does what an [`Attempt`] says and tells what the kernel answered, if the process is still there to tell.
fn perform(attempt: &Attempt, held: &Held<'_>) -> io::Result<()> {
    let mut scratch = [0_u64; 64];
    let [a, b, c, d, e, f] = attempt.arguments(held, scratch.as_mut_ptr() as c_long);
    // SAFETY: attempts are a fixed list inside this crate (no public constructor). Their arguments are integers, borrowed
    // descriptors, pointers to strings and structures that outlive the call, or null; the kernel writes through none of them
    // but `scratch`, and less than its 512 bytes. A new process made by an attempt ends in the next lines.
    let answer = unsafe { libc::syscall(attempt.number, a, b, c, d, e, f) };
    if answer == 0 && matches!(attempt.number, libc::SYS_clone | libc::SYS_clone3) {
        // SAFETY: ends the new process, and with it this copy of the address space.
        unsafe { libc::_exit(0) };
    }
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What the role must not get away with; `None`: the monitor.
pub fn attempts(role: Option<Role>) -> impl Iterator<Item = &'static Attempt> {
    ATTEMPTS.iter().filter(move |a| match a.who {
        Who::Everybody => true,
        Who::Children => role.is_some_and(|role| !reads(role, a)),
        Who::WithoutFiles => role.is_some_and(|role| role != Role::Broker && !reads(role, a)),
        Who::Broker => role == Some(Role::Broker),
    })
}

/// Whether the attempt is what the role is there for; caisson-config: reading files of the machine, asking its name service.
fn reads(role: Role, attempt: &Attempt) -> bool {
    use libc::{SYS_connect, SYS_faccessat, SYS_getdents64, SYS_memfd_create, SYS_newfstatat, SYS_openat};
    let files = [SYS_faccessat, SYS_getdents64, SYS_newfstatat, SYS_openat, libc::SYS_readlinkat, libc::SYS_statx];
    let reads = files.contains(&attempt.number) || [SYS_connect, SYS_memfd_create].contains(&attempt.number);
    // authd makes the table of certificates for workers.
    if role == Role::Authd {
        return attempt.number == SYS_memfd_create;
    }
    // Modules of the name service set their own sockets so; it holds none that others share.
    role == Role::Config && (reads || attempt.name.starts_with("fcntl: F_SETFL"))
}

const fn act(
    name: &'static str,
    who: Who,
    alone: Alone,
    number: c_long,
    with: fn(&Held<'_>, c_long) -> [c_long; 6],
) -> Attempt {
    Attempt { name, alone, who, number, with }
}

/// Pads arguments to six.
fn six<const N: usize>(given: [c_long; N]) -> [c_long; 6] {
    let mut all = [0; 6];
    for (to, from) in all.iter_mut().zip(given) {
        *to = from;
    }
    all
}

fn fd(of: BorrowedFd<'_>) -> c_long {
    int(of.as_raw_fd())
}

fn int(value: c_int) -> c_long {
    c_long::from(value)
}

fn text(of: &std::ffi::CStr) -> c_long {
    of.as_ptr() as c_long
}

/// `struct open_how` of openat2(2), read-only; and read-write.
static READ: [u64; 3] = [0, 0, 0];
static READ_WRITE: [u64; 3] = [libc::O_RDWR as u64, 0, 0];

fn how(of: &'static [u64; 3]) -> c_long {
    of.as_ptr() as c_long
}

const OPEN_HOW: c_long = size_of::<[u64; 3]>() as c_long;

/// The discard port of this machine, as `struct sockaddr_in`.
static DISCARD: [u8; 16] = [2, 0, 0, 9, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

use Alone::{Returns, Succeeds, SucceedsAsRoot};
use Who::{Broker, Children, Everybody, WithoutFiles};

#[rustfmt::skip]
static ATTEMPTS: &[Attempt] = &[
    act("ptrace: be traced", Everybody, Succeeds, libc::SYS_ptrace, |_, _| [0; 6]),
    act("process_vm_readv: read another's memory", Everybody, Succeeds, libc::SYS_process_vm_readv, |_, _| six([int(std::process::id().cast_signed())])),
    act("bpf: make a map", Everybody, Returns, libc::SYS_bpf, |_, s| six([0, s, 72])),
    act("keyctl: the session keyring", Everybody, Returns, libc::SYS_keyctl, |_, _| six([0, -3, 0])),
    act("io_uring_setup: a ring", Everybody, Returns, libc::SYS_io_uring_setup, |_, s| six([1, s])),
    act("userfaultfd", Everybody, Returns, libc::SYS_userfaultfd, |_, _| six([1])),
    act("perf_event_open", Everybody, Returns, libc::SYS_perf_event_open, |_, _| [0; 6]),
    act("personality: ask", Everybody, Succeeds, libc::SYS_personality, |_, _| six([0xffff_ffff])),
    act("setns: another namespace", Everybody, Returns, libc::SYS_setns, |h, _| six([fd(h.file), 0])),
    act("open_by_handle_at", Everybody, Returns, libc::SYS_open_by_handle_at, |h, _| six([fd(h.directory), 0, 0])),
    act("init_module: nothing", Everybody, Returns, libc::SYS_init_module, |_, _| [0; 6]),
    act("kexec_load: nothing", Everybody, Returns, libc::SYS_kexec_load, |_, _| six([0, 0, 0, -1])),
    act("reboot: without its magic numbers", Everybody, Returns, libc::SYS_reboot, |_, _| [0; 6]),
    act("swapon: nothing", Everybody, Returns, libc::SYS_swapon, |_, _| [0; 6]),
    act("settimeofday: to nothing", Everybody, SucceedsAsRoot, libc::SYS_settimeofday, |_, _| [0; 6]),

    act("execve: a program", Children, Succeeds, libc::SYS_execve, |_, _| six([text(c"/bin/true"), 0, 0])),
    act("clone: a process", Children, Succeeds, libc::SYS_clone, |_, _| six([int(libc::SIGCHLD)])),
    act("clone3: a process", Children, Returns, libc::SYS_clone3, |_, _| [0; 6]),
    act("unshare: a namespace", Children, SucceedsAsRoot, libc::SYS_unshare, |_, _| six([int(libc::CLONE_NEWUTS)])),
    act("mount: on nothing", Children, Returns, libc::SYS_mount, |_, _| six([0, text(c"/nonexistent")])),
    act("chroot", Children, SucceedsAsRoot, libc::SYS_chroot, |_, _| six([text(c"/")])),
    act("setresuid: become root", Children, SucceedsAsRoot, libc::SYS_setresuid, |_, _| [0; 6]),
    act("capset", Children, Returns, libc::SYS_capset, |_, _| [0; 6]),
    act("prctl: dumpable again", Children, Succeeds, libc::SYS_prctl, |_, _| six([int(libc::PR_SET_DUMPABLE), 1])),
    act("kill: the machine's first process", Children, SucceedsAsRoot, libc::SYS_kill, |_, _| six([1, 0])),
    act("tgkill: another process", Children, SucceedsAsRoot, libc::SYS_tgkill, |_, _| six([1, 1, 0])),
    act("socket: TCP", Children, Succeeds, libc::SYS_socket, |_, _| six([int(libc::AF_INET), int(libc::SOCK_STREAM), 0])),
    act("bind", Children, Returns, libc::SYS_bind, |h, _| six([fd(h.listener), DISCARD.as_ptr() as c_long, 16])),
    act("listen: on a held socket", Children, Succeeds, libc::SYS_listen, |h, _| six([fd(h.listener), 1])),
    act("connect", Children, Returns, libc::SYS_connect, |h, _| six([fd(h.listener), DISCARD.as_ptr() as c_long, 16])),
    act("sendto: connects by MSG_FASTOPEN", Children, Returns, libc::SYS_sendto, |h, _| six([fd(h.listener), text(c"x"), 1, int(libc::MSG_FASTOPEN), DISCARD.as_ptr() as c_long, 16])),
    act("mmap: executable", Children, Succeeds, libc::SYS_mmap, |_, _| six([0, 4096, int(libc::PROT_READ | libc::PROT_EXEC), int(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS), -1, 0])),
    act("mprotect: executable", Children, Succeeds, libc::SYS_mprotect, |_, _| six([0, 0, int(libc::PROT_EXEC)])),
    act("openat: a file of the machine", Children, Succeeds, libc::SYS_openat, |_, _| six([int(AT_FDCWD), text(c"/etc/passwd"), 0])),
    act("chdir", Children, Succeeds, libc::SYS_chdir, |_, _| six([text(c"/")])),
    act("faccessat", Children, Succeeds, libc::SYS_faccessat, |h, _| six([fd(h.directory), text(c"file"), 0])),
    act("statfs: a path", Children, Succeeds, libc::SYS_statfs, |_, s| six([text(c"/"), s])),
    act("truncate: a path", Children, Returns, libc::SYS_truncate, |_, _| six([text(c"/nonexistent"), 0])),
    act("setxattr: a path", Children, Returns, libc::SYS_setxattr, |_, _| six([text(c"/nonexistent"), text(c"user.x"), 0, 0, 0])),
    act("fchown: a held read-only file", Children, Succeeds, libc::SYS_fchown, |h, _| six([fd(h.file), -1, -1])),
    act("fsetxattr: a held read-only file", Children, Returns, libc::SYS_fsetxattr, |h, _| six([fd(h.file), text(c"user.x"), text(c"1"), 1, 0])),
    act("fchownat", Children, Succeeds, libc::SYS_fchownat, |h, _| six([fd(h.directory), text(c"file"), -1, -1, 0])),
    act("flock: a held read-only file", Children, Succeeds, libc::SYS_flock, |h, _| six([fd(h.file), int(libc::LOCK_SH)])),
    act("fchdir: a held directory", Children, Succeeds, libc::SYS_fchdir, |h, _| six([fd(h.directory)])),
    act("ioctl: FIOCLEX", Children, Succeeds, libc::SYS_ioctl, |h, _| six([fd(h.file), 0x5451])),
    act("fcntl: a command not listed", Children, Succeeds, libc::SYS_fcntl, |h, _| six([fd(h.file), int(libc::F_GETOWN)])),
    act("mknodat: a named pipe", Children, Succeeds, libc::SYS_mknodat, |h, _| six([fd(h.directory), text(c"pipe"), c_long::from(libc::S_IFIFO | 0o600), 0])),

    act("fcntl: F_SETFL, which would make a shared listener block", WithoutFiles, Succeeds, libc::SYS_fcntl, |h, _| six([fd(h.file), int(libc::F_SETFL), 0])),
    act("ioctl: FIONBIO, which would make a shared listener block", WithoutFiles, Succeeds, libc::SYS_ioctl, |h, s| six([fd(h.file), 0x5421, s])),
    act("openat2: beneath a held directory", WithoutFiles, Succeeds, libc::SYS_openat2, |h, _| six([fd(h.directory), text(c"file"), how(&READ), OPEN_HOW])),
    act("newfstatat: beneath a held directory", WithoutFiles, Succeeds, libc::SYS_newfstatat, |h, s| six([fd(h.directory), text(c"file"), s, 0])),
    act("newfstatat: a path, with AT_EMPTY_PATH", WithoutFiles, Succeeds, libc::SYS_newfstatat, |_, s| six([int(AT_FDCWD), text(c"/"), s, int(libc::AT_EMPTY_PATH)])),
    act("statx: a path", WithoutFiles, Succeeds, libc::SYS_statx, |_, s| six([int(AT_FDCWD), text(c"/"), 0, 0xfff, s])),
    act("getdents64: a held directory", WithoutFiles, Succeeds, libc::SYS_getdents64, |h, s| six([fd(h.directory), s, 512])),
    act("readlinkat", WithoutFiles, Returns, libc::SYS_readlinkat, |_, s| six([int(AT_FDCWD), text(c"/nonexistent"), s, 512])),
    act("fchmod: a held read-only file", WithoutFiles, Succeeds, libc::SYS_fchmod, |h, _| six([fd(h.file), 0o600])),
    act("fchmodat: beneath a held directory", WithoutFiles, Succeeds, libc::SYS_fchmodat, |h, _| six([fd(h.directory), text(c"file"), 0o600])),
    act("utimensat: beneath a held directory", WithoutFiles, Succeeds, libc::SYS_utimensat, |h, _| six([fd(h.directory), text(c"file"), 0, 0])),
    act("utimensat: a held read-only file", WithoutFiles, Succeeds, libc::SYS_utimensat, |h, _| six([fd(h.file), 0, 0, 0])),
    act("mkdirat", WithoutFiles, Succeeds, libc::SYS_mkdirat, |h, _| six([fd(h.directory), text(c"made"), 0o700])),
    act("symlinkat", WithoutFiles, Succeeds, libc::SYS_symlinkat, |h, _| six([text(c"/"), fd(h.directory), text(c"symlink")])),
    act("linkat", WithoutFiles, Succeeds, libc::SYS_linkat, |h, _| six([fd(h.directory), text(c"file"), fd(h.directory), text(c"link"), 0])),
    act("renameat2", WithoutFiles, Succeeds, libc::SYS_renameat2, |h, _| six([fd(h.directory), text(c"file"), fd(h.directory), text(c"renamed"), 0])),
    act("unlinkat", WithoutFiles, Succeeds, libc::SYS_unlinkat, |h, _| six([fd(h.directory), text(c"file"), 0])),
    act("memfd_create", WithoutFiles, Succeeds, libc::SYS_memfd_create, |_, _| six([text(c"x"), 0])),
    act("shutdown: the shared listener, for receiving", WithoutFiles, Succeeds, libc::SYS_shutdown, |h, _| six([fd(h.listener), int(libc::SHUT_RD)])),
    act("setsockopt: TCP_DEFER_ACCEPT on the shared listener", WithoutFiles, Succeeds, libc::SYS_setsockopt, |h, s| six([fd(h.listener), int(libc::IPPROTO_TCP), int(libc::TCP_DEFER_ACCEPT), s, 4])),
    act("setsockopt: SO_RCVLOWAT on the shared listener", WithoutFiles, Succeeds, libc::SYS_setsockopt, |h, s| six([fd(h.listener), int(libc::SOL_SOCKET), int(libc::SO_RCVLOWAT), s, 4])),
    act("setsockopt: a socket filter", WithoutFiles, Returns, libc::SYS_setsockopt, |h, _| six([fd(h.listener), int(libc::SOL_SOCKET), int(libc::SO_ATTACH_FILTER), 0, 0])),

    act("openat2: a file of the machine", Broker, Succeeds, libc::SYS_openat2, |_, _| six([int(AT_FDCWD), text(c"/etc/passwd"), how(&READ), OPEN_HOW])),
    act("openat2: a held read-only file once more, for writing", Broker, Succeeds, libc::SYS_openat2, |h, _| six([int(AT_FDCWD), text(&h.reopened), how(&READ_WRITE), OPEN_HOW])),
    act("openat2: out of the account's root by ..", Broker, Succeeds, libc::SYS_openat2, |_, _| six([int(AT_FDCWD), text(c"../../../../../../../../../../etc/passwd"), how(&READ), OPEN_HOW])),
    act("openat2: a process of the machine", Broker, Succeeds, libc::SYS_openat2, |_, _| six([int(AT_FDCWD), text(c"/proc/self/status"), how(&READ), OPEN_HOW])),
];
