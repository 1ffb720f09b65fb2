//! Each permission missing, each operation refused; and each operation with its own permission alone.

use child_ipc::{
    link::worker_broker::{Facts, Form, Op, Why, WriteMode},
    types::{Blob, Permission, Permissions},
};

use crate::harness::{Broker, Setting, StartedBy, at, ways};

fn broker(by: StartedBy, permissions: Permissions) -> Broker {
    let broker = Broker::with(&Setting { permissions, ..Setting::new(by) });
    broker.file("/f", "contents");
    broker.directory("/d");
    broker
}

/// Every operation, done so that it would work, with the permission it needs.
fn operations() -> Vec<(Op, Permission)> {
    let facts = |modified, mode| Op::SetFacts { path: at("/f"), modified, mode };
    vec![
        (Op::OpenRead(at("/f")), Permission::Read),
        (Op::OpenWrite { path: at("/new"), mode: WriteMode::Replace, umask: 0 }, Permission::Write),
        (Op::OpenWrite { path: at("/newer"), mode: WriteMode::Append, umask: 0 }, Permission::Write),
        (Op::OpenWrite { path: at("/newest"), mode: WriteMode::At(0), umask: 0 }, Permission::Write),
        (Op::OpenWrite { path: at("/kept"), mode: WriteMode::Kept(0), umask: 0 }, Permission::Write),
        (Op::OpenWrite { path: at("/"), mode: WriteMode::Unique, umask: 0 }, Permission::Write),
        (Op::Stat(at("/f")), Permission::List),
        (Op::List { path: at("/"), form: Form::Long, hidden: true, written: Blob::default() }, Permission::List),
        (Op::List { path: at("/f"), form: Form::Names, hidden: true, written: Blob::default() }, Permission::List),
        (Op::Facts { path: at("/f"), facts: Facts::EVERY }, Permission::List),
        (Op::SetMode(at("/f"), 0o600), Permission::Chmod),
        (facts(None, Some(0o600)), Permission::Chmod),
        (facts(Some(0), None), Permission::Times),
        (Op::SetTimes { path: at("/f"), accessed: 0, modified: 0 }, Permission::Times),
        (Op::Space(at("/d")), Permission::Write),
        (Op::SetModified(at("/d"), 0), Permission::Times),
        (Op::MakeDir(at("/made"), 0), Permission::Mkdir),
        (Op::Rename { from: at("/f"), to: at("/d/g") }, Permission::Rename),
        (Op::Rename { from: at("/d/g"), to: at("/f") }, Permission::Rename),
        (Op::Remove(at("/f")), Permission::Delete),
        (Op::RemoveDir(at("/d")), Permission::Rmdir),
    ]
}

#[test]
fn an_operation_is_refused_without_its_permission_and_only_then() {
    for by in ways() {
        for (name, missing) in Permission::ALL {
            let rest = Permission::ALL.into_iter().map(|(_, p)| p).filter(|p| *p != missing);
            let mut broker = broker(by, rest.fold(Permissions::NONE, Permissions::with));
            let mut worker = broker.worker();
            for (op, needed) in operations() {
                let outcome = worker.ask(op.clone()).map(|_| ());
                if needed == missing {
                    assert_eq!(outcome, Err(Why::Denied), "{op:?} without {name}");
                } else {
                    assert_eq!(outcome, Ok(()), "{op:?} without {name}");
                }
            }
        }
    }
}

/// What Landlock leaves must suffice, too.
#[test]
fn each_permission_is_enough_for_its_own_operations() {
    for by in ways() {
        for (name, held) in Permission::ALL {
            let mut broker = broker(by, Permissions::NONE.with(held));
            let mut worker = broker.worker();
            assert_eq!(worker.done(Op::ChangeDir(at("/d"))), Ok(()), "{name}");
            for (op, needed) in operations() {
                // monitor/broker/src/op/set_mode.rs: without a root of its own it needs a descriptor that Landlock lets it open.
                if by == StartedBy::User && needed == Permission::Chmod {
                    continue;
                }
                let expected = if needed == held { Ok(()) } else { Err(Why::Denied) };
                assert_eq!(worker.ask(op.clone()).map(|_| ()), expected, "{op:?} with {name} alone");
            }
        }
    }
}

#[test]
fn an_account_without_permissions_cannot_even_change_directory() {
    for by in ways() {
        let mut broker = broker(by, Permissions::NONE);
        let mut worker = broker.worker();
        assert_eq!(worker.done(Op::ChangeDir(at("/d"))), Err(Why::Denied));
    }
}

#[test]
fn without_permission_to_overwrite_what_exists_stays_as_it_is() {
    for by in ways() {
        let held = Permissions::NONE.with(Permission::Write).with(Permission::Rename);
        let mut broker = broker(by, held);
        broker.file("/g", "other");
        broker.symlink("/link", "f");
        let mut worker = broker.worker();
        for path in ["/f", "/link", "/d"] {
            for mode in [WriteMode::Replace, WriteMode::Append, WriteMode::At(0), WriteMode::At(3)] {
                assert_eq!(worker.write(path, mode).unwrap_err(), Why::Exists, "{path} {mode:?}");
            }
        }
        assert_eq!(worker.write("/none", WriteMode::At(3)).unwrap_err(), Why::Invalid);
        assert!(worker.write("/f", WriteMode::Unique).unwrap().0.created);
        assert_eq!(worker.done(Op::Rename { from: at("/g"), to: at("/f") }), Err(Why::Exists));
        assert_eq!(worker.done(Op::Rename { from: at("/g"), to: at("/link") }), Err(Why::Exists));
        assert_eq!(worker.done(Op::Rename { from: at("/g"), to: at("/h") }), Ok(()));
        assert_eq!((broker.contents("/f").as_str(), broker.contents("/h").as_str()), ("contents", "other"));
    }
}

#[test]
fn a_copy_takes_read_and_write_and_a_link_write_and_rename() {
    for by in ways() {
        let pairs = [
            (Op::Copy { from: at("/f"), to: at("/g"), umask: 0 }, [Permission::Read, Permission::Write]),
            (Op::Symlink { target: at("/f"), link: at("/link") }, [Permission::Write, Permission::Rename]),
        ];
        for (op, both) in pairs {
            for one in both {
                let mut broker = broker(by, Permissions::NONE.with(one));
                assert_eq!(broker.worker().ask(op.clone()).map(|_| ()), Err(Why::Denied), "{op:?} with {one:?}");
            }
            let held = both.into_iter().fold(Permissions::NONE, Permissions::with);
            let mut broker = broker(by, held);
            assert_eq!(broker.worker().ask(op.clone()).map(|_| ()), Ok(()), "{op:?}");
        }
    }
}

#[test]
fn a_copy_replaces_nothing_without_permission_to_overwrite() {
    for by in ways() {
        let mut broker = broker(by, Permissions::NONE.with(Permission::Read).with(Permission::Write));
        broker.file("/g", "precious");
        let mut worker = broker.worker();
        let copy = |to: &str| Op::Copy { from: at("/f"), to: at(to), umask: 0 };
        assert_eq!(worker.ask(copy("/g")).unwrap_err(), Why::Exists);
        assert_eq!(worker.ask(copy("/f")).unwrap_err(), Why::Exists);
        assert_eq!((broker.contents("/g").as_str(), broker.contents("/f").as_str()), ("precious", "contents"));
    }
}
