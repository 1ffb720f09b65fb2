//! Operation × permissions → verdict: the one table that every operation passes before anything is touched.
//!
//! A rule is a rule on an operation, never on a command of a protocol. What depends on whether a file exists
//! ([`Permission::Overwrite`]) is decided by the call that makes the file (`O_EXCL`, `RENAME_NOREPLACE`), not before it.
//! The same permissions narrow the Landlock domain. Not here: the file system's own permissions (the kernel has those).

use ipc::{
    link::worker_broker::{Op, Why},
    types::{Permission, Permissions},
};
use sandbox::Rights;

/// The permission an operation needs. `None`: any account that may do something at all.
fn needed(op: &Op) -> Option<Permission> {
    match op {
        Op::OpenRead(_) => Some(Permission::Read),
        Op::OpenWrite { .. } => Some(Permission::Write),
        Op::Stat(_) | Op::List { .. } | Op::Facts { .. } => Some(Permission::List),
        Op::ChangeDir(_) => None,
        Op::MakeDir(_) => Some(Permission::Mkdir),
        Op::RemoveDir(_) => Some(Permission::Rmdir),
        Op::Remove(_) => Some(Permission::Delete),
        Op::Rename { .. } => Some(Permission::Rename),
        Op::SetModified(..) => Some(Permission::Times),
        Op::SetMode(..) => Some(Permission::Chmod),
    }
}

/// The verdict.
pub(crate) fn check(op: &Op, held: Permissions) -> Result<(), Why> {
    let allowed = needed(op).map_or(held != Permissions::NONE, |permission| held.has(permission));
    if allowed { Ok(()) } else { Err(Why::Denied) }
}

/// What Landlock leaves to the account.
pub(crate) fn rights(held: Permissions) -> Rights {
    Rights {
        read: held.has(Permission::Read),
        write: held.has(Permission::Write),
        list: held.has(Permission::List),
        delete: held.has(Permission::Delete) || held.has(Permission::Rmdir),
        rename: held.has(Permission::Rename),
        mkdir: held.has(Permission::Mkdir),
        attributes: held.has(Permission::Chmod) || held.has(Permission::Times),
        ..Rights::NONE
    }
}

#[cfg(test)]
mod tests {
    use ipc::{
        link::worker_broker::{Facts, Form, WriteMode},
        types::VirtPath,
    };

    use super::*;

    fn every_operation() -> Vec<(Op, Option<Permission>)> {
        let path = VirtPath::root;
        vec![
            (Op::OpenRead(path()), Some(Permission::Read)),
            (Op::OpenWrite { path: path(), mode: WriteMode::Replace }, Some(Permission::Write)),
            (Op::Stat(path()), Some(Permission::List)),
            (Op::ChangeDir(path()), None),
            (Op::List { path: path(), form: Form::Long, hidden: false }, Some(Permission::List)),
            (Op::Facts { path: path(), facts: Facts::EVERY }, Some(Permission::List)),
            (Op::MakeDir(path()), Some(Permission::Mkdir)),
            (Op::RemoveDir(path()), Some(Permission::Rmdir)),
            (Op::Remove(path()), Some(Permission::Delete)),
            (Op::Rename { from: path(), to: path() }, Some(Permission::Rename)),
            (Op::SetModified(path(), 0), Some(Permission::Times)),
            (Op::SetMode(path(), 0), Some(Permission::Chmod)),
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
                let expected = if needed == Some(missing) { Err(Why::Denied) } else { Ok(()) };
                assert_eq!(check(&op, all_but(missing)), expected, "{op:?} without {name}");
            }
        }
    }

    #[test]
    fn landlock_is_given_nothing_for_an_account_without_permissions_and_no_links_to_anybody() {
        assert_eq!(rights(Permissions::NONE), Rights::NONE);
        assert_eq!(rights(Permissions::ALL), Rights { link: false, ..Rights::ALL });
        assert!(!rights(all_but(Permission::Read)).read);
        assert!(rights(Permissions::NONE.with(Permission::Rmdir)).delete);
    }
}
