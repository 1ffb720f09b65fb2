//! What the monitor requires of the kernel before it starts anybody: Landlock, for its children.
//!
//! Not here: their domains (sandbox/child/src/landlock.rs).

use std::os::fd::OwnedFd;

use ::landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

use crate::Error;

/// Its name in errors.
pub const LANDLOCK: &str = "Landlock";

/// The least a kernel must offer: without ABI 2 (Linux 5.19) a broker could rename nothing into another directory.
///
/// Debian 12 has ABI 2. What ABI 3 adds (truncation) a root-started broker of a read-only account gets from its read-only mount.
pub const LEAST: ABI = ABI::V2;

/// The monitor has no domain: it only makes sure, before it starts anybody, that its children can have theirs.
///
/// Descendants share their ancestors' domains. One that handles file access forbids them every mount; and *any* domain, even of
/// scopes alone, denies `LANDLOCK_ACCESS_FS_REFER`, so no broker could rename into another directory (landlock(7)).
pub fn landlock() -> Result<(), Error> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))
        .and_then(Ruleset::create)
        .map_err(|_| no_landlock())?;
    Option::<OwnedFd>::from(ruleset).map(drop).ok_or_else(no_landlock)
}

/// This kernel has too little of it.
pub fn no_landlock() -> Error {
    Error::unenforced(LANDLOCK, "it needs Linux 5.19, built with Landlock and with landlock in its lsm= list")
}
