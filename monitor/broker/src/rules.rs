//! Operation × permissions → verdict: the one table that every operation passes before anything is touched.
//!
//! A rule is a rule on an operation, never on a command of a protocol. What depends on whether a file exists
//! ([`Permission::Overwrite`]) is decided by the call that makes the file (`O_EXCL`, `RENAME_NOREPLACE`), not before it.
//! The same permissions narrow the Landlock domain. Not here: the file system's own permissions (the kernel has those).

use child_ipc::{
    link::worker_broker::{Op, Why},
    types::{Permission, Permissions, VirtPath},
};
use child_sandbox::Rights;

use crate::unfinished;

/// The permissions an operation needs, all of them. None: any account that may do something at all.
fn needed(op: &Op) -> &'static [Permission] {
    match op {
        Op::OpenRead(_) => &[Permission::Read],
        Op::OpenWrite { .. } | Op::Space(_) => &[Permission::Write],
        Op::Stat(_) | Op::List { .. } | Op::Facts { .. } => &[Permission::List],
        Op::ChangeDir(_) => &[],
        Op::MakeDir(..) => &[Permission::Mkdir],
        Op::RemoveDir(_) => &[Permission::Rmdir],
        Op::Remove(_) => &[Permission::Delete],
        Op::Rename { .. } => &[Permission::Rename],
        Op::SetModified(..) | Op::SetTimes { .. } => &[Permission::Times],
        Op::SetMode(..) => &[Permission::Chmod],
        Op::SetFacts { modified, mode, .. } => match (modified, mode) {
            (Some(_), None) => &[Permission::Times],
            (None, Some(_)) => &[Permission::Chmod],
            (Some(_), Some(_)) => &[Permission::Times, Permission::Chmod],
            (None, None) => &[Permission::List],
        },
        // A link is a name for something else, as a rename is.
        Op::Symlink { .. } => &[Permission::Write, Permission::Rename],
        Op::Copy { .. } => &[Permission::Read, Permission::Write],
        Op::Publish { .. } | Op::Discard(_) => &[Permission::Write],
    }
}

/// The name an operation may make.
fn made(op: &Op) -> Option<&VirtPath> {
    match op {
        Op::OpenWrite { path, .. } | Op::MakeDir(path, _) => Some(path),
        Op::Rename { to, .. } | Op::Copy { to, .. } => Some(to),
        Op::Symlink { link, .. } => Some(link),
        _ => None,
    }
}

/// The verdict. The names of uploads under way are nobody's to give, for they are not listed, and removed when met.
pub(crate) fn check(op: &Op, held: Permissions) -> Result<(), Why> {
    let name = made(op).and_then(|path| path.as_bytes().rsplit(|&b| b == b'/').next());
    if name.is_some_and(unfinished::is_name) {
        return Err(Why::Denied);
    }
    let allowed = match needed(op) {
        [] => held != Permissions::NONE,
        all => all.iter().all(|permission| held.has(*permission)),
    };
    if allowed { Ok(()) } else { Err(Why::Denied) }
}

/// What Landlock leaves to the account. Publishing an upload, or removing one that was cut, is the removal of a name to it.
pub(crate) fn rights(held: Permissions, atomic_uploads: bool) -> Rights {
    let publish = atomic_uploads && held.has(Permission::Write);
    Rights {
        read: held.has(Permission::Read),
        write: held.has(Permission::Write),
        list: held.has(Permission::List),
        delete: held.has(Permission::Delete) || held.has(Permission::Rmdir) || publish,
        rename: held.has(Permission::Rename),
        mkdir: held.has(Permission::Mkdir),
        attributes: held.has(Permission::Chmod) || held.has(Permission::Times),
        ..Rights::NONE
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use child_ipc::{
        link::worker_broker::{Facts, Form, WriteMode},
        types::Blob,
    };

    use super::*;

    fn every_operation() -> Vec<(Op, Vec<Permission>)> {
        use Permission::{Chmod, Delete, List, Mkdir, Read, Rename, Rmdir, Times, Write};
        let path = VirtPath::root;
        let facts = |modified, mode| Op::SetFacts { path: path(), modified, mode };
        vec![
            (Op::OpenRead(path()), vec![Read]),
            (Op::OpenWrite { path: path(), mode: WriteMode::Replace, umask: 0 }, vec![Write]),
            (Op::Stat(path()), vec![List]),
            (Op::ChangeDir(path()), vec![]),
            (Op::List { path: path(), form: Form::Long, hidden: false, written: Blob::default() }, vec![List]),
            (Op::Facts { path: path(), facts: Facts::EVERY }, vec![List]),
            (Op::MakeDir(path(), 0), vec![Mkdir]),
            (Op::RemoveDir(path()), vec![Rmdir]),
            (Op::Remove(path()), vec![Delete]),
            (Op::Rename { from: path(), to: path() }, vec![Rename]),
            (Op::SetModified(path(), 0), vec![Times]),
            (Op::SetTimes { path: path(), accessed: 0, modified: 0 }, vec![Times]),
            (Op::SetMode(path(), 0), vec![Chmod]),
            (facts(Some(0), None), vec![Times]),
            (facts(None, Some(0)), vec![Chmod]),
            (facts(Some(0), Some(0)), vec![Times, Chmod]),
            (facts(None, None), vec![List]),
            (Op::Space(path()), vec![Write]),
            (Op::Symlink { target: path(), link: path() }, vec![Write, Rename]),
            (Op::Copy { from: path(), to: path(), umask: 0 }, vec![Read, Write]),
            (Op::Publish { staged: NonZeroU32::MIN, sync: false }, vec![Write]),
            (Op::Discard(NonZeroU32::MIN), vec![Write]),
        ]
    }

    fn all_but(missing: Permission) -> Permissions {
        let rest = Permission::ALL.into_iter().map(|(_, p)| p).filter(|p| *p != missing);
        rest.fold(Permissions::NONE, Permissions::with)
    }

    #[test]
    fn an_operation_is_refused_exactly_when_its_permission_is_missing() {
        for (op, needed) in every_operation() {
            assert_eq!(check(&op, Permissions::ALL), Ok(()), "{op:?}");
            assert_eq!(check(&op, Permissions::NONE), Err(Why::Denied), "{op:?}");
            for (name, missing) in Permission::ALL {
                let expected = if needed.contains(&missing) { Err(Why::Denied) } else { Ok(()) };
                assert_eq!(check(&op, all_but(missing)), expected, "{op:?} without {name}");
            }
        }
    }

    #[test]
    fn landlock_is_given_nothing_for_an_account_without_permissions_and_no_links_to_anybody() {
        assert_eq!(rights(Permissions::NONE, true), Rights::NONE);
        assert_eq!(rights(Permissions::ALL, false), Rights { link: false, ..Rights::ALL });
        assert!(!rights(all_but(Permission::Read), false).read);
        assert!(rights(Permissions::NONE.with(Permission::Rmdir), false).delete);
        let writes = Permissions::NONE.with(Permission::Write);
        assert!(!rights(writes, false).delete && rights(writes, true).delete);
    }
}
