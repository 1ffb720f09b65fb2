//! The Landlock domain of each child: nothing of the file system but a broker's root, no TCP, no signals to strangers.
//!
//! Applies to the calling thread and to those it makes afterwards, so it comes before the first thread.
//! Landlock leaves path-based stat, chmod, chown, utime and setxattr alone, and descriptors opened before: seccomp has those.
//! Rows of the policy: which access rights each of [`Rights`] stands for.

use std::os::fd::OwnedFd;

use ::landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{Error, Report, Rights, Role, Root};

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

const WHAT: &str = "Landlock";

/// Puts the calling thread into the role's domain.
pub(crate) fn restrict(role: Role, root: Root<'_>, rights: &Rights, report: &mut Report) -> Result<(), Error> {
    if role == Role::Monitor {
        return require();
    }
    let status = build(root, rights).map_err(|e| Error::unenforced(WHAT, e))?;
    let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
        return Err(missing());
    };
    if effective_abi < LEAST {
        return Err(missing());
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
        RulesetStatus::NotEnforced => Err(Error::Broken(WHAT)),
        _ => verify(root),
    }
}

/// In an empty root the domain is all that keeps `/` itself from being opened.
fn verify(root: Root<'_>) -> Result<(), Error> {
    let opened = || rustix::fs::open("/", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    match root {
        Root::Empty if opened().err() != Some(Errno::ACCESS) => Err(Error::Broken(WHAT)),
        _ => Ok(()),
    }
}

/// The monitor has no domain: it only makes sure, before it starts anybody, that its children can have theirs.
///
/// Descendants share their ancestors' domains. One that handles file access forbids them every mount; and *any* domain, even of
/// scopes alone, denies `LANDLOCK_ACCESS_FS_REFER`, so no broker could rename into another directory (landlock(7)).
fn require() -> Result<(), Error> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))
        .and_then(Ruleset::create)
        .map_err(|_| missing())?;
    Option::<OwnedFd>::from(ruleset).map(drop).ok_or_else(missing)
}

fn missing() -> Error {
    Error::unenforced(WHAT, "it needs Linux 5.19, built with Landlock and with landlock in its lsm= list")
}

fn build(root: Root<'_>, rights: &Rights) -> Result<RestrictionStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let access = granted(rights);
    match root {
        Root::Directory(directory) if !access.is_empty() => {
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
