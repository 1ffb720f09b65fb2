//! What caissond may do, the only place that enforces it, and what its children's sandbox is made of as well.
//!
//! Imports no crate of ours. Reads from: its caller only. Trusts: the kernel.
//! What the monitor may call is data, in `policy/`; `seccomp` and `creds` bring it into force, and each checks afterwards that it
//! holds. All of it runs as root, and is counted by monitor/tests/tcb.rs.
//! Not here: how children confine themselves, and what each of them may do (sandbox/child); who starts whom (monitor/src/spawn.rs).

pub mod creds;
mod error;
pub mod policy;
mod seccomp;

pub use error::Error;
pub use seccomp::seal;

/// Confines the monitor for good: it stays root with few capabilities, under its seccomp filter. It must have one thread, for
/// capabilities belong to threads.
///
/// It has no Landlock domain. Descendants share their ancestors' domains: one that handles file access forbids them every mount,
/// and *any* domain, even of scopes alone, denies `LANDLOCK_ACCESS_FS_REFER`, so no broker could rename into another directory
/// (landlock(7)). Whether the kernel has Landlock, the first children find out.
///
/// # Errors
/// [`Error::Unenforced`] if the kernel has no seccomp filters, and all but that is in force; [`Error::Fault`] if a call fails,
/// [`Error::Broken`] if something claims to be in force and is not.
pub fn confine_monitor() -> Result<(), Error> {
    creds::narrow(creds::MONITOR_KEEPS)?;
    creds::drop_capabilities(creds::MONITOR_KEEPS)?;
    seal(&policy::monitor())
}
