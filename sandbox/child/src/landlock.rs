//! The Landlock domain of each child: no TCP, no signals to strangers, and nothing of the file system but a broker's root; for
//! caisson-config, all of it to read.
//!
//! Applies to the calling thread and to those it makes afterwards, so it comes before the first thread.
//! Landlock leaves path-based stat, chmod, chown, utime and setxattr alone, and descriptors opened before: seccomp has those.
//! Rows of the policy: which access rights each of [`Rights`] stands for.

use std::os::fd::{AsFd, BorrowedFd};

use ::landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{Error, Report, Rights, Role, Root};

/// Its name in errors.
const LANDLOCK: &str = "Landlock";

/// The least a kernel must offer: without ABI 2 (Linux 5.19) a broker could rename nothing into another directory.
///
/// Debian 12 has ABI 2. What ABI 3 adds (truncation) a root-started broker of a read-only account gets from its read-only mount.
const LEAST: ABI = ABI::V2;

/// What later kernels can refuse beyond that: taken when there, named in the report when not.
const LATER: &[(ABI, &str)] = &[
    (ABI::V3, "refuse truncation of files"),
    (ABI::V4, "refuse TCP bind and connect (seccomp refuses them)"),
    (ABI::V5, "refuse ioctl on devices (seccomp refuses it)"),
    (ABI::V6, "keep signals and abstract sockets inside"),
];

/// The newest version whose rights were looked at and wanted.
const NEWEST: ABI = ABI::V10;

const OPEN: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Puts the calling thread into the role's domain.
pub(crate) fn restrict(role: Role, root: &Root<'_>, rights: &Rights, report: &mut Report) -> Result<(), Error> {
    let machine = matches!(root, Root::Keep).then(|| rustix::fs::open("/", OPEN | OFlags::PATH, Mode::empty()));
    let machine = machine.transpose().map_err(Error::fault("open /"))?;
    let beneath = match (root, &machine) {
        (Root::Directory(directory), _) => Some((directory.as_fd(), granted(rights))),
        // The sockets of the name service are connected to by path.
        (_, Some(machine)) => Some((machine.as_fd(), AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::ResolveUnix)),
        _ => None,
    };
    let status = build(beneath).map_err(|e| Error::unenforced(LANDLOCK, e))?;
    let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
        return Err(no_landlock());
    };
    if effective_abi < LEAST {
        return Err(no_landlock());
    }
    for (abi, what) in LATER {
        if effective_abi < *abi {
            report.weaker.push(format!(
                "{}: this kernel's Landlock (ABI {}) cannot {what}, which needs ABI {}",
                role.as_str(),
                effective_abi as i32,
                *abi as i32
            ));
        }
    }
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(Error::Broken(LANDLOCK)),
        _ => verify(root),
    }
}

/// This kernel has too little of it.
fn no_landlock() -> Error {
    Error::unenforced(LANDLOCK, "it needs Linux 5.19, built with Landlock and with landlock in its lsm= list")
}

/// In an empty root the domain is all that keeps `/` itself from being opened.
fn verify(root: &Root<'_>) -> Result<(), Error> {
    let opened = || rustix::fs::open("/", OPEN, Mode::empty());
    match root {
        Root::Empty if opened().err() != Some(Errno::ACCESS) => Err(Error::Broken(LANDLOCK)),
        _ => Ok(()),
    }
}

/// A domain that grants these rights beneath this directory, and no others.
fn build(beneath: Option<(BorrowedFd<'_>, BitFlags<AccessFs>)>) -> Result<RestrictionStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    match beneath {
        Some((directory, access)) if !access.is_empty() => {
            ruleset.add_rule(PathBeneath::new(directory, access))?.restrict_self()
        }
        _ => ruleset.restrict_self(),
    }
}

/// The access rights an account's permissions stand for.
fn granted(rights: &Rights) -> BitFlags<AccessFs> {
    use AccessFs::{MakeDir, MakeReg, MakeSym, ReadDir, ReadFile, Refer, RemoveDir, RemoveFile, Truncate, WriteFile};
    let rows = [
        (rights.read, ReadFile.into()),
        (rights.write, WriteFile | Truncate | MakeReg),
        (rights.list, ReadDir.into()),
        (rights.delete, RemoveFile | RemoveDir),
        // To Landlock a rename removes at one end, makes at the other, and may cross directories.
        (rights.rename, RemoveFile | RemoveDir | MakeReg | MakeDir | MakeSym | Refer),
        (rights.mkdir, MakeDir.into()),
        (rights.link, MakeSym | MakeReg | Refer),
    ];
    rows.into_iter().filter(|(given, _)| *given).fold(BitFlags::EMPTY, |all, (_, access)| all | access)
}
