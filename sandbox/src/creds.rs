//! Who a process is: ids, capabilities, `no_new_privs`, core dumps, and descriptors left over from the parent.
//!
//! Trusts: nothing it set without reading it back. Also holds the two calls that no crate of ours wraps safely
//! (close_range(2), mount_setattr(2)), so that unsafe code stays in the files that may have it.
//! Not here: which ids (monitor/config).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid};
use rustix::process::DumpableBehavior;

use crate::{Error, Ids, Role};

/// What root's monitor keeps; everybody else keeps nothing.
///
/// Its children start with the same set, and need most of it to give up the rest of what they are.
pub(crate) const MONITOR_KEEPS: &[(Capability, &str)] = &[
    (Capability::CAP_CHOWN, "the owner of authd.sock: monitor/src/listen.rs"),
    (Capability::CAP_DAC_READ_SEARCH, "an account's root, closed to others: monitor/src/spawn.rs"),
    (Capability::CAP_KILL, "ends children of other uids: monitor/src/reap.rs"),
    (Capability::CAP_NET_BIND_SERVICE, "ports 20 and 21: monitor/src/listen.rs"),
    (Capability::CAP_SETGID, "a child becomes its gid and groups: sandbox/src/creds.rs"),
    (Capability::CAP_SETPCAP, "a child empties its bounding set: sandbox/src/creds.rs"),
    (Capability::CAP_SETUID, "a child becomes its uid: sandbox/src/creds.rs"),
    (Capability::CAP_SYS_ADMIN, "a child's namespaces and root: sandbox/src/mounts.rs"),
    (Capability::CAP_SYS_RESOURCE, "limits of descriptors and pipes for many sessions: monitor/src/spawn.rs"),
];

/// Whether the process runs as root.
pub(crate) fn is_root() -> bool {
    Uid::effective().is_root()
}

/// The first step of confinement: sees that the process has one thread, and keeps malloc to one arena.
pub(crate) fn begin() -> Result<(), Error> {
    let tasks = std::fs::read_dir("/proc/self/task").map_err(Error::fault("open /proc/self/task"))?;
    if tasks.count() != 1 {
        return Err(Error::Refused("confine must come before the first thread"));
    }
    use_one_arena();
    Ok(())
}

/// No core file, and no ptrace(2) by another process of the same uid.
pub(crate) fn forbid_core_dumps() -> Result<(), Error> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(Error::fault("setrlimit(RLIMIT_CORE)"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(Error::fault("prctl(PR_SET_DUMPABLE)"))
}

/// Keeps malloc to one arena, for all threads to come.
///
/// glibc's malloc opens `/proc/sys/vm/overcommit_memory` when a thread's own arena shrinks for the first time, and after the
/// seal that open would kill the process. One arena is smaller as well.
fn use_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets an integer inside malloc; the process has one thread (`begin` has checked).
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Becomes `ids` and gives up every capability the role does not keep; then reads all of it back.
pub(crate) fn drop_to(role: Role, ids: Option<&Ids>) -> Result<(), Error> {
    let keep = kept(role);
    let permitted = caps::read(None, CapSet::Permitted).map_err(capability_fault)?;
    // Only root can narrow the bounding set; without it, no_new_privs keeps the set from ever mattering.
    if permitted.contains(&Capability::CAP_SETPCAP) {
        narrow_bounding(&keep)?;
    }
    if let Some(ids) = ids {
        become_ids(ids)?;
    }
    // A change of uid has emptied the permitted set already, unless the uid is 0.
    let left = caps::read(None, CapSet::Permitted).map_err(capability_fault)?;
    let left: CapsHashSet = left.intersection(&keep).copied().collect();
    caps::clear(None, CapSet::Ambient).map_err(capability_fault)?;
    caps::clear(None, CapSet::Inheritable).map_err(capability_fault)?;
    caps::set(None, CapSet::Effective, &left).map_err(capability_fault)?;
    caps::set(None, CapSet::Permitted, &left).map_err(capability_fault)?;
    rustix::thread::set_no_new_privs(true).map_err(Error::fault("prctl(PR_SET_NO_NEW_PRIVS)"))?;
    // The kernel makes a process dumpable again when its uid changes.
    forbid_core_dumps()?;
    verify(ids, &left)
}

fn kept(role: Role) -> CapsHashSet {
    match role {
        Role::Monitor => MONITOR_KEEPS.iter().map(|&(cap, _)| cap).collect(),
        _ => CapsHashSet::new(),
    }
}

fn capability_fault(e: caps::errors::CapsError) -> Error {
    Error::Fault { call: "capset", errno: io::Error::other(e.to_string()) }
}

/// Drops from the bounding set by number, so that capabilities newer than the caps crate go too.
fn narrow_bounding(keep: &CapsHashSet) -> Result<(), Error> {
    let keep: Vec<u8> = keep.iter().map(Capability::index).collect();
    for number in 0..64 {
        // SAFETY: PR_CAPBSET_READ takes an integer and touches no memory; EINVAL (-1) past the last capability.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, libc::c_ulong::from(number)) } {
            1 if !keep.contains(&number) => {
                // SAFETY: PR_CAPBSET_DROP takes an integer and touches no memory.
                if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number)) } != 0 {
                    return Err(Error::fault("prctl(PR_CAPBSET_DROP)")(io::Error::last_os_error()));
                }
            }
            0 | 1 => {}
            _ => break,
        }
    }
    Ok(())
}

fn become_ids(ids: &Ids) -> Result<(), Error> {
    let (uid, gid) = (Uid::from_raw(ids.uid), Gid::from_raw(ids.gid));
    let groups: Vec<Gid> = ids.groups.iter().copied().map(Gid::from_raw).collect();
    nix::unistd::setgroups(&groups).map_err(Error::fault("setgroups"))?;
    nix::unistd::setresgid(gid, gid, gid).map_err(Error::fault("setresgid"))?;
    nix::unistd::setresuid(uid, uid, uid).map_err(Error::fault("setresuid"))
}

fn verify(ids: Option<&Ids>, left: &CapsHashSet) -> Result<(), Error> {
    if let Some(ids) = ids {
        verify_ids(ids)?;
    }
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

fn verify_ids(ids: &Ids) -> Result<(), Error> {
    let uids = nix::unistd::getresuid().map_err(Error::fault("getresuid"))?;
    let gids = nix::unistd::getresgid().map_err(Error::fault("getresgid"))?;
    let mut groups: Vec<u32> =
        nix::unistd::getgroups().map_err(Error::fault("getgroups"))?.into_iter().map(Gid::as_raw).collect();
    let mut wanted = ids.groups.clone();
    groups.sort_unstable();
    wanted.sort_unstable();
    let same = [uids.real, uids.effective, uids.saved].iter().all(|u| u.as_raw() == ids.uid)
        && [gids.real, gids.effective, gids.saved].iter().all(|g| g.as_raw() == ids.gid)
        && groups == wanted;
    let way_back = ids.uid != 0 && nix::unistd::setuid(Uid::from_raw(0)).is_ok();
    if !same || way_back {
        return Err(Error::Broken("the change of uid, gid and groups"));
    }
    Ok(())
}

/// Closes every descriptor above 2 but `kept`.
pub(crate) fn close_all_but(kept: &OwnedFd) -> Result<(), Error> {
    let kept = kept.as_raw_fd().unsigned_abs();
    for (first, last) in [(3, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        // SAFETY: the process has just been exec'd and owns no descriptor above 2 but `kept`: what is closed here was left
        // open by the parent, and nothing in this address space refers to it (upheld by link.rs, the first step of a child).
        if first <= last && unsafe { libc::close_range(first, last, 0) } != 0 {
            return Err(Error::fault("close_range")(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Makes `old` refer to what `new` refers to; the number and its owner stay.
pub(crate) fn replace_descriptor(new: impl AsFd, old: impl AsFd) -> Result<(), Error> {
    let (new, old) = (new.as_fd().as_raw_fd(), old.as_fd().as_raw_fd());
    // SAFETY: both are open (borrowed for the call). `old` stays open under the same number and its owner still closes it
    // once; that it now refers to another open file is what Root::Directory documents.
    if unsafe { libc::dup3(new, old, libc::O_CLOEXEC) } < 0 {
        return Err(Error::fault("dup3")(io::Error::last_os_error()));
    }
    Ok(())
}

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Sets attributes of a whole tree of mounts, and makes it private.
pub(crate) fn set_mount_attributes(tree: &OwnedFd, set: u64) -> io::Result<()> {
    let attr = MountAttr { set, clear: 0, propagation: libc::MS_PRIVATE, userns: 0 };
    // SAFETY: the path is a static empty string, `attr` outlives the call and its size is passed with it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
