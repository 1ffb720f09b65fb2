//! What a process may be: capabilities, `no_new_privs`, core dumps.
//!
//! Trusts: nothing it set without reading it back. Beside `kernels`, no other file of ours holds unsafe code; so what children do
//! by calls that no crate wraps safely is here as well, behind what root does.
//! Not here: uids and gids (sandbox/child/src/ids.rs).

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::resource::{Resource, setrlimit};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::mm::{Advice, madvise};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set};

use crate::Error;

/// Capabilities to keep, each with what for.
pub type Keeps = &'static [(Capability, &'static str)];

/// What root's monitor keeps; everybody else keeps nothing.
///
/// Its children start with the same set, and need most of it to give up the rest of what they are.
pub(crate) const MONITOR_KEEPS: Keeps = &[
    (Capability::CAP_DAC_READ_SEARCH, "an account's root, closed to others: monitor/broker/src/resolve.rs"),
    (Capability::CAP_KILL, "ends children of other uids: monitor/src/reap.rs"),
    (Capability::CAP_NET_BIND_SERVICE, "ports 20 and 21: monitor/src/listen.rs"),
    (Capability::CAP_SETGID, "a child becomes its gid and groups: sandbox/child/src/ids.rs"),
    (Capability::CAP_SETPCAP, "a child empties its bounding set: sandbox/src/creds.rs"),
    (Capability::CAP_SETUID, "a child becomes its uid: sandbox/child/src/ids.rs"),
    (Capability::CAP_SYS_ADMIN, "a child's namespaces and root: sandbox/child/src/mounts.rs"),
    (Capability::CAP_SYS_RESOURCE, "limits of descriptors and pipes for many sessions: monitor/src/spawn.rs"),
];

/// No core file, and no ptrace(2) by another process of the same uid.
///
/// # Errors
/// [`Error::Fault`] if a call fails.
pub fn forbid_core_dumps() -> Result<(), Error> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(Error::fault("setrlimit(RLIMIT_CORE)"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(Error::fault("prctl(PR_SET_DUMPABLE)"))
}

/// Keeps malloc to one arena, for all threads to come.
///
/// glibc's malloc opens `/proc/sys/vm/overcommit_memory` when a thread's own arena shrinks for the first time, and after the
/// seal that open would kill the process. One arena is smaller as well.
pub fn use_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets an integer inside malloc, under malloc's own lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Takes from the bounding set what is not kept, by number, so that capabilities newer than the caps crate go too.
///
/// # Errors
/// [`Error::Fault`] if a call fails.
pub fn narrow(keeps: Keeps) -> Result<(), Error> {
    // Only root can narrow the bounding set; without it, no_new_privs keeps the set from ever mattering.
    if !caps::has_cap(None, CapSet::Permitted, Capability::CAP_SETPCAP).map_err(capability_fault)? {
        return Ok(());
    }
    let keep = keeps.iter().fold(0, |all, (capability, _)| all | capability.bitmask());
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(one) {
            Ok(true) if keep & one.bits() == 0 => {
                remove_capability_from_bounding_set(one).map_err(Error::fault("prctl(PR_CAPBSET_DROP)"))?;
            }
            Ok(_) => {}
            // Past the last one this kernel knows.
            Err(_) => break,
        }
    }
    Ok(())
}

/// Gives up every capability that is not kept, and the hope of new ones; then reads all of it back.
///
/// # Errors
/// [`Error::Fault`] if a call fails, [`Error::Broken`] if what was given up is still there.
pub fn drop_capabilities(keeps: Keeps) -> Result<(), Error> {
    // A change of uid has emptied the permitted set already, unless the uid is 0.
    let left = caps::read(None, CapSet::Permitted).map_err(capability_fault)?;
    let left: CapsHashSet =
        keeps.iter().map(|&(capability, _)| capability).filter(|kept| left.contains(kept)).collect();
    caps::clear(None, CapSet::Ambient).map_err(capability_fault)?;
    caps::clear(None, CapSet::Inheritable).map_err(capability_fault)?;
    caps::set(None, CapSet::Effective, &left).map_err(capability_fault)?;
    caps::set(None, CapSet::Permitted, &left).map_err(capability_fault)?;
    rustix::thread::set_no_new_privs(true).map_err(Error::fault("prctl(PR_SET_NO_NEW_PRIVS)"))?;
    // The kernel makes a process dumpable again when its uid changes.
    forbid_core_dumps()?;
    verify(&left)
}

fn capability_fault(e: caps::errors::CapsError) -> Error {
    Error::Fault { call: "capset", errno: io::Error::other(e.to_string()) }
}

fn verify(left: &CapsHashSet) -> Result<(), Error> {
    let nothing = CapsHashSet::new();
    for (set, wanted) in [
        (CapSet::Effective, left),
        (CapSet::Permitted, left),
        (CapSet::Inheritable, &nothing),
        (CapSet::Ambient, &nothing),
    ] {
        if caps::read(None, set).map_err(capability_fault)? != *wanted {
            return Err(Error::Broken("the drop of capabilities"));
        }
    }
    if !rustix::thread::no_new_privs().map_err(Error::fault("prctl(PR_GET_NO_NEW_PRIVS)"))? {
        return Err(Error::Broken("no_new_privs"));
    }
    Ok(())
}

/// Sets attributes of a whole tree of mounts, and makes it private (mount_setattr(2)).
///
/// # Errors
/// What the kernel answered.
pub fn set_mount_attributes(tree: &OwnedFd, set: u64) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    let (flags, size) = (libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, size_of_val(&attr));
    // SAFETY: the path is a static empty string, `attr` outlives the call and its size is passed with it.
    let done =
        unsafe { libc::syscall(libc::SYS_mount_setattr, tree.as_raw_fd(), c"".as_ptr(), flags, &raw const attr, size) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

unsafe extern "C" {
    /// The first byte of the program as it is mapped (ld(1)).
    static __executable_start: u8;
    /// The first byte behind its machine code (end(3)).
    static etext: u8;
}

/// Unmaps the program's machine code and constants; a page comes back from the page cache when it is touched again.
///
/// The kernel maps sixteen pages of a program for each that is touched, and set-up touches most of them: measured, half of what a
/// waiting broker weighs, and more of a worker (ARCHITECTURE.md).
#[inline]
pub fn give_back_pages() {
    let pages = unwritten();
    // SAFETY: from the ELF header to the last whole page of machine code lie only private mappings of the program's file
    // that are never written (what the loader relocates lies behind them, as the test below sees): the file holds the same
    // bytes. A failure leaves everything as it is.
    let _ = unsafe { madvise(std::ptr::without_provenance_mut(pages.start), pages.len(), Advice::LinuxDontNeed) };
}

/// [`give_back_pages`], and waits until `fd` is readable: both in one place, or most pages would come back on the way to the next.
#[inline(never)]
pub fn rest_until_readable(fd: impl AsFd) {
    let mut wanted = [PollFd::new(&fd, PollFlags::IN)];
    give_back_pages();
    // Whoever reads next learns what there is to learn, an error too.
    let _ = poll(&mut wanted, None);
}

/// The addresses of whole pages of machine code, and of what the linker has put in front of it.
fn unwritten() -> Range<usize> {
    // SAFETY: reads a number that the loader was told; it touches no memory of ours.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(usize::MAX);
    let whole = |address: usize| address / page * page;
    whole((&raw const __executable_start).addr())..whole((&raw const etext).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_the_programs_own_file_and_nobody_may_write_it() {
        let program = std::env::current_exe().unwrap().display().to_string();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let (pages, mut covered) = (unwritten(), 0);
        for line in maps.lines() {
            let (addresses, rest) = line.split_once(' ').unwrap();
            let (from, to) = addresses.split_once('-').unwrap();
            let [from, to] = [from, to].map(|address| usize::from_str_radix(address, 16).unwrap());
            let common = to.min(pages.end).saturating_sub(from.max(pages.start));
            if common > 0 {
                assert!(rest.starts_with("r--p") || rest.starts_with("r-xp"), "{line}");
                assert!(rest.ends_with(&program), "{line}");
                covered += common;
            }
        }
        assert!(covered > pages.len() / 2, "{covered} of {pages:x?}");
        rest_until_readable(std::fs::File::open("/dev/null").unwrap());
    }
}
