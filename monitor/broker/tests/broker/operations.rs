//! What each operation does for an account that may do everything.

use std::{
    fs,
    io::{Read, Seek, Write},
    os::unix::fs::MetadataExt,
};

use child_ipc::link::worker_broker::{Attrs, Done, Kind, Op, Why, WriteMode};

use crate::harness::{Broker, Setting, StartedBy, at, ways};

#[test]
fn reading_gives_a_read_only_descriptor_of_the_whole_file() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "hello");
        let mut worker = broker.worker();
        assert_eq!(worker.read("/f"), Ok(b"hello".to_vec()));
        let (_, fd) = worker.ask(Op::OpenRead(at("/f"))).unwrap();
        let flags = rustix::fs::fcntl_getfl(fd.as_ref().unwrap()).unwrap();
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
        assert!(fs::File::from(fd.unwrap()).write(b"x").is_err());
    }
}

#[test]
fn reading_tells_what_cannot_be_read() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        broker.fifo("/pipe");
        broker.file("/closed", "x");
        fs::set_permissions(broker.path("/closed"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        let mut worker = broker.worker();
        for (path, expected) in [
            ("/none", Why::NotFound),
            ("/d", Why::IsDirectory),
            ("/", Why::IsDirectory),
            ("/closed/x", Why::NotDirectory),
            ("/closed", Why::Denied),
            ("/pipe", Why::NotRegular),
        ] {
            assert_eq!(worker.read(path), Err(expected), "{path}");
        }
    }
}

#[test]
fn storing_makes_a_file_or_empties_one() {
    for by in ways() {
        let mut broker = Broker::new(by);
        let mut worker = broker.worker();
        let (opened, mut file) = worker.write("/new", WriteMode::Replace).unwrap();
        assert!(opened.created && opened.size == 0 && opened.chosen.is_none());
        file.write_all(b"first contents").unwrap();
        assert!(file.read(&mut [0]).is_err());
        assert_eq!(broker.mode("/new"), 0o644);
        let (opened, mut file) = worker.write("/new", WriteMode::Replace).unwrap();
        assert!(!opened.created && opened.size == 14);
        file.write_all(b"second").unwrap();
        assert_eq!(broker.contents("/new"), "second");
        assert_eq!(fs::metadata(broker.path("/new")).unwrap().uid(), fs::metadata(broker.path("/")).unwrap().uid());
    }
}

#[test]
fn storing_through_a_link_that_leads_nowhere_makes_its_target_inside() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.symlink("/link", "target");
        let mut worker = broker.worker();
        let (opened, mut file) = worker.write("/link", WriteMode::Replace).unwrap();
        assert!(opened.created);
        file.write_all(b"x").unwrap();
        assert_eq!(broker.contents("/target"), "x");
    }
}

#[test]
fn appending_starts_at_the_end_and_is_not_o_append() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "12345");
        let mut worker = broker.worker();
        let (opened, mut file) = worker.write("/f", WriteMode::Append).unwrap();
        assert_eq!((opened.size, opened.created, file.stream_position().unwrap()), (5, false, 5));
        assert!(!rustix::fs::fcntl_getfl(&file).unwrap().contains(rustix::fs::OFlags::APPEND));
        file.write_all(b"678").unwrap();
        assert_eq!(broker.contents("/f"), "12345678");
        assert!(worker.write("/new", WriteMode::Append).unwrap().0.created);
    }
}

#[test]
fn resuming_cuts_the_file_at_the_offset() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "0123456789");
        let mut worker = broker.worker();
        let (opened, mut file) = worker.write("/f", WriteMode::At(4)).unwrap();
        assert_eq!((opened.size, opened.created), (10, false));
        file.write_all(b"xy").unwrap();
        assert_eq!(broker.contents("/f"), "0123xy");
        assert_eq!(worker.write("/f", WriteMode::At(6)).unwrap().1.stream_position().unwrap(), 6);
        for offset in [7, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
            assert_eq!(worker.write("/f", WriteMode::At(offset)).unwrap_err(), Why::Invalid);
        }
        assert_eq!(worker.write("/none", WriteMode::At(1)).unwrap_err(), Why::Invalid);
        assert!(!broker.exists("/none"));
        assert_eq!(broker.contents("/f"), "0123xy");
        assert_eq!(worker.write("/none", WriteMode::Kept(1)).unwrap_err(), Why::Invalid);
        let before = worker.write("/f", WriteMode::Kept(2)).unwrap().0.size;
        assert_eq!(worker.write("/f", WriteMode::Kept(0)).unwrap().0.size, before, "nothing is cut");
        assert!(worker.write("/none", WriteMode::At(0)).unwrap().0.created);
        worker.write("/f", WriteMode::At(0)).unwrap();
        assert_eq!(broker.contents("/f"), "");
    }
}

#[test]
fn a_unique_name_is_the_one_asked_for_or_one_like_it() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        let mut worker = broker.worker();
        let mut names = Vec::new();
        for path in ["/f", "/f", "/f", "/d", "/d", "/"] {
            let (opened, _) = worker.write(path, WriteMode::Unique).unwrap();
            assert!(opened.created);
            names.push(String::from_utf8(opened.chosen.unwrap().as_bytes().to_vec()).unwrap());
        }
        assert_eq!(names[0], "/f");
        assert!(names[1].starts_with("/f.") && names[2].starts_with("/f.") && names[1] != names[2]);
        assert!(names[3].starts_with("/d/stou.") && names[5].starts_with("/stou."));
        assert!(names.iter().all(|name| broker.exists(name)));
        let long = format!("/{}", "n".repeat(255));
        worker.write(&long, WriteMode::Unique).unwrap();
        let (opened, _) = worker.write(&long, WriteMode::Unique).unwrap();
        assert_eq!(opened.chosen.unwrap().as_bytes().len(), 256);
        assert_eq!(worker.write("/none/f", WriteMode::Unique).unwrap_err(), Why::NotFound);
    }
}

#[test]
fn storing_where_it_cannot_work_leaves_everything_as_it_was() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        broker.directory("/readonly");
        fs::set_permissions(broker.path("/readonly"), std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
        broker.fifo("/pipe");
        broker.file("/f", "x");
        broker.file("/mine", "kept");
        fs::set_permissions(broker.path("/mine"), std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
        let mut worker = broker.worker();
        for (path, expected) in [
            ("/d", Why::IsDirectory),
            ("/", Why::IsDirectory),
            ("/readonly/f", Why::Denied),
            ("/none/f", Why::NotFound),
            ("/f/f", Why::NotDirectory),
            ("/pipe", Why::NotRegular),
            ("/mine", Why::Denied),
        ] {
            for mode in [WriteMode::Replace, WriteMode::Append] {
                assert_eq!(worker.write(path, mode).unwrap_err(), expected, "{path} {mode:?}");
            }
        }
        assert_eq!(broker.contents("/mine"), "kept");
    }
}

#[test]
fn attributes_are_those_of_what_the_path_leads_to() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "12345");
        broker.directory("/d");
        broker.symlink("/link", "f");
        broker.symlink("/dangling", "none");
        let mut worker = broker.worker();
        let modified = fs::metadata(broker.path("/f")).unwrap().mtime();
        let file = Attrs { kind: Kind::File, size: 5, modified, mode: 0o644 };
        for path in ["/f", "/link"] {
            assert_eq!(worker.ask(Op::Stat(at(path))).unwrap().0, Done::Stat(file));
        }
        let (Done::Stat(directory), None) = worker.ask(Op::Stat(at("/d"))).unwrap() else { panic!() };
        assert_eq!(directory.kind, Kind::Directory);
        for path in ["/dangling", "/none"] {
            assert_eq!(worker.ask(Op::Stat(at(path))).unwrap_err(), Why::NotFound);
        }
    }
}

#[test]
fn one_can_change_into_a_directory_that_may_be_searched_and_nothing_else() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        broker.directory("/closed");
        fs::set_permissions(broker.path("/closed"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        broker.file("/f", "");
        broker.symlink("/link", "/d");
        let mut worker = broker.worker();
        for path in ["/", "/d", "/link"] {
            assert_eq!(worker.done(Op::ChangeDir(at(path))), Ok(()), "{path}");
        }
        for (path, expected) in [("/f", Why::NotDirectory), ("/none", Why::NotFound), ("/closed", Why::Denied)] {
            assert_eq!(worker.done(Op::ChangeDir(at(path))), Err(expected), "{path}");
        }
    }
}

#[test]
fn directories_are_made_and_removed() {
    for by in ways() {
        let mut broker = Broker::with(&Setting { umask: 0o027, ..Setting::new(by) });
        broker.file("/f", "");
        broker.symlink("/link", "d");
        let mut worker = broker.worker();
        assert_eq!(worker.done(Op::MakeDir(at("/d"), 0)), Ok(()));
        assert_eq!(broker.mode("/d"), 0o750);
        assert_eq!(worker.done(Op::MakeDir(at("/d/e"), 0)), Ok(()));
        for (op, expected) in [
            (Op::MakeDir(at("/d"), 0), Why::Exists),
            (Op::MakeDir(at("/"), 0), Why::Exists),
            (Op::MakeDir(at("/none/d"), 0), Why::NotFound),
            (Op::RemoveDir(at("/d")), Why::NotEmpty),
            (Op::RemoveDir(at("/f")), Why::NotDirectory),
            (Op::RemoveDir(at("/link")), Why::NotDirectory),
            (Op::RemoveDir(at("/none")), Why::NotFound),
            (Op::RemoveDir(at("/")), Why::Denied),
        ] {
            assert_eq!(worker.done(op.clone()), Err(expected), "{op:?}");
        }
        assert_eq!(worker.done(Op::RemoveDir(at("/d/e"))), Ok(()));
        assert_eq!(worker.done(Op::RemoveDir(at("/d"))), Ok(()));
        assert!(!broker.exists("/d"));
    }
}

#[test]
fn removing_takes_files_links_and_fifos_but_no_directory() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        broker.file("/f", "kept");
        broker.symlink("/link", "f");
        broker.fifo("/pipe");
        let mut worker = broker.worker();
        assert_eq!(worker.done(Op::Remove(at("/link"))), Ok(()));
        assert_eq!(broker.contents("/f"), "kept");
        assert_eq!(worker.done(Op::Remove(at("/pipe"))), Ok(()));
        assert_eq!(worker.done(Op::Remove(at("/d"))), Err(Why::IsDirectory));
        assert_eq!(worker.done(Op::Remove(at("/"))), Err(Why::Denied));
        assert_eq!(worker.done(Op::Remove(at("/none"))), Err(Why::NotFound));
        assert_eq!(worker.done(Op::Remove(at("/f"))), Ok(()));
        assert!(broker.exists("/d") && !broker.exists("/f"));
    }
}

#[test]
fn renaming_moves_replaces_and_refuses_what_makes_no_sense() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        broker.directory("/full");
        broker.file("/full/x", "");
        for (path, contents) in [("/a", "a"), ("/b", "b")] {
            broker.file(path, contents);
        }
        let mut worker = broker.worker();
        let mut rename = |from: &str, to: &str| worker.done(Op::Rename { from: at(from), to: at(to) });
        assert_eq!(rename("/a", "/b"), Ok(()));
        assert_eq!(broker.contents("/b"), "a");
        assert_eq!(rename("/b", "/d/c"), Ok(()));
        assert_eq!(broker.contents("/d/c"), "a");
        for (from, to, expected) in [
            ("/none", "/x", Why::NotFound),
            ("/d", "/none/d", Why::NotFound),
            ("/d", "/d/inside", Why::Invalid),
            ("/full", "/d", Why::NotEmpty),
            ("/d/c", "/full", Why::IsDirectory),
            ("/full", "/d/c", Why::NotDirectory),
            ("/", "/x", Why::Denied),
            ("/d", "/", Why::Denied),
        ] {
            assert_eq!(rename(from, to), Err(expected), "{from} {to}");
        }
        assert_eq!(rename("/d", "/e"), Ok(()));
        assert_eq!(broker.contents("/e/c"), "a");
    }
}

#[test]
fn the_modification_time_is_set_and_comes_back() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        broker.symlink("/link", "f");
        broker.fifo("/pipe");
        let accessed = fs::metadata(broker.path("/f")).unwrap().atime();
        let mut worker = broker.worker();
        for (path, seconds) in [("/f", 951_827_696), ("/link", 0), ("/", 1)] {
            let (Done::Stat(attrs), None) = worker.ask(Op::SetModified(at(path), seconds)).unwrap() else { panic!() };
            assert_eq!(attrs.modified, seconds);
        }
        let file = fs::metadata(broker.path("/f")).unwrap();
        assert_eq!((file.mtime(), file.atime()), (0, accessed));
        assert_eq!(worker.ask(Op::SetModified(at("/pipe"), 0)).unwrap_err(), Why::NotRegular);
        assert_eq!(worker.ask(Op::SetModified(at("/none"), 0)).unwrap_err(), Why::NotFound);
    }
}

#[test]
fn permission_bits_are_set_but_never_set_id_or_sticky_bits() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "");
        broker.directory("/d");
        broker.fifo("/pipe");
        let mut worker = broker.worker();
        assert_eq!(worker.done(Op::SetMode(at("/f"), 0o600)), Ok(()));
        assert_eq!(broker.mode("/f"), 0o600);
        fs::set_permissions(broker.path("/d"), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        assert_eq!(worker.done(Op::SetMode(at("/d"), 0o700)), Ok(()));
        assert_eq!(broker.mode("/d"), 0o1700);
        for mode in [0o4755, 0o2755, 0o1777, 0o7777, 0o10644, u16::MAX] {
            assert_eq!(worker.done(Op::SetMode(at("/f"), mode)), Err(Why::Denied), "{mode:o}");
        }
        assert_eq!(broker.mode("/f"), 0o600);
        assert_eq!(worker.done(Op::SetMode(at("/pipe"), 0o600)), Err(Why::NotRegular));
        assert_eq!(worker.done(Op::SetMode(at("/none"), 0o600)), Err(Why::NotFound));
    }
}

#[test]
fn a_file_that_was_closed_to_oneself_can_be_opened_again_in_a_root_of_its_own() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "");
        broker.directory("/d");
        let mut worker = broker.worker();
        for path in ["/f", "/d"] {
            assert_eq!(worker.done(Op::SetMode(at(path), 0)), Ok(()));
            let expected = if by == StartedBy::Root { Ok(()) } else { Err(Why::Denied) };
            assert_eq!(worker.done(Op::SetMode(at(path), 0o700)), expected, "{path} {by:?}");
        }
    }
}

#[test]
fn the_mask_of_a_session_comes_on_top_of_the_account_s() {
    for by in ways() {
        let mut broker = Broker::with(&Setting { umask: 0o002, ..Setting::new(by) });
        let mut worker = broker.worker();
        let made = |worker: &mut crate::harness::Worker, path: &str, umask| {
            worker.ask(Op::OpenWrite { path: at(path), mode: WriteMode::Replace, umask }).unwrap();
        };
        made(&mut worker, "/loose", 0);
        made(&mut worker, "/strict", 0o077);
        made(&mut worker, "/odd", u16::MAX);
        assert_eq!(worker.done(Op::MakeDir(at("/d"), 0o027)), Ok(()));
        let modes = ["/loose", "/strict", "/odd", "/d"].map(|path| broker.mode(path));
        assert_eq!(modes, [0o664, 0o600, 0o000, 0o750]);
    }
}

#[test]
fn facts_and_times_are_set_together() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        let mut worker = broker.worker();
        let facts = |modified, mode| Op::SetFacts { path: at("/f"), modified, mode };
        let (Done::Stat(attrs), None) = worker.ask(facts(Some(77), Some(0o600))).unwrap() else { panic!() };
        assert_eq!((attrs.modified, attrs.mode), (77, 0o600));
        assert_eq!(worker.ask(facts(Some(99), Some(0o4755))).unwrap_err(), Why::Denied);
        let Done::Stat(attrs) = worker.ask(facts(None, None)).unwrap().0 else { panic!() };
        assert_eq!((attrs.modified, attrs.mode), (77, 0o600), "a refused fact leaves the other alone");
        worker.ask(Op::SetTimes { path: at("/f"), accessed: 5, modified: 6 }).unwrap();
        let file = fs::metadata(broker.path("/f")).unwrap();
        assert_eq!((file.atime(), file.mtime()), (5, 6));
    }
}

#[test]
fn space_is_told_of_any_path_that_is_there() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "x");
        let mut worker = broker.worker();
        for path in ["/", "/f"] {
            let (Done::Space(bytes), None) = worker.ask(Op::Space(at(path))).unwrap() else { panic!() };
            assert!(bytes > 0);
        }
        assert_eq!(worker.ask(Op::Space(at("/none"))).unwrap_err(), Why::NotFound);
    }
}

#[test]
fn links_are_relative_and_made_only_where_the_way_is_without_links() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        broker.file("/f", "contents");
        broker.symlink("/way", "d");
        let mut worker = broker.worker();
        let mut link = |target: &str, link: &str| worker.done(Op::Symlink { target: at(target), link: at(link) });
        assert_eq!(link("/f", "/d/link"), Ok(()));
        assert_eq!(fs::read_link(broker.path("/d/link")).unwrap(), std::path::Path::new("../f"));
        assert_eq!(link("/none", "/dangling"), Ok(()));
        for (path, expected) in
            [("/d/link", Why::Exists), ("/way/link", Why::Invalid), ("/none/link", Why::NotFound), ("/", Why::Denied)]
        {
            assert_eq!(link("/f", path), Err(expected), "{path}");
        }
        assert_eq!(worker.read("/d/link"), Ok(b"contents".to_vec()));
    }
}

#[test]
fn a_copy_is_opened_at_both_ends_and_never_onto_itself() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        broker.fifo("/pipe");
        broker.file("/f", "contents");
        broker.file("/g", "longer than before");
        broker.symlink("/link", "f");
        fs::hard_link(broker.path("/f"), broker.path("/hard")).unwrap();
        let mut worker = broker.worker();
        let copy = |from: &str, to: &str| Op::Copy { from: at(from), to: at(to), umask: 0 };
        for same in ["/f", "/link", "/hard"] {
            assert_eq!(worker.ask(copy("/f", same)).unwrap_err(), Why::Invalid, "{same}");
        }
        for (from, to, expected) in [
            ("/none", "/x", Why::NotFound),
            ("/d", "/x", Why::IsDirectory),
            ("/pipe", "/x", Why::NotRegular),
            ("/f", "/d", Why::IsDirectory),
            ("/f", "/pipe", Why::NotRegular),
        ] {
            assert_eq!(worker.ask(copy(from, to)).unwrap_err(), expected, "{from} {to}");
        }
        assert!(!broker.exists("/x"));
        assert_eq!(broker.contents("/f"), "contents");
        let (Done::Copying { bytes: 8, .. }, Some(source)) = worker.ask(copy("/f", "/g")).unwrap() else { panic!() };
        assert_eq!(std::io::read_to_string(fs::File::from(source)).unwrap(), "contents");
        assert_eq!(broker.contents("/g"), "", "emptied, for the worker to fill");
    }
}
