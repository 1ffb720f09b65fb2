//! LIST, NLST, MLSD and MLST: what the lines say, and that nobody can change them.

use std::{fs, os::unix::fs::MetadataExt, time::Instant};

use child_ipc::{
    link::worker_broker::{Done, Facts, Form, Op, Why},
    types::{Blob, Permission, Permissions},
};
use rustix::fs::{AtFlags, SealFlags, Timespec, Timestamps};

use crate::harness::{Broker, Setting, Worker, at, give, ways};

const TYPE: Form = Form::Facts(Facts(1));

fn lines(worker: &mut Worker, path: &str, form: Form, hidden: bool) -> Vec<String> {
    let listing = String::from_utf8(worker.list(path, form, hidden).unwrap()).unwrap();
    assert!(listing.is_empty() || listing.ends_with("\r\n"));
    listing.split_terminator("\r\n").map(str::to_owned).collect()
}

fn dated(broker: &Broker, path: &str, seconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, broker.path(path), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// A directory with one of everything.
fn furnished(broker: &Broker) {
    broker.file("/file", "12345");
    broker.directory("/dir");
    broker.symlink("/to-file", "file");
    broker.symlink("/to-dir", "/dir");
    broker.symlink("/dangling", "none");
    broker.fifo("/fifo");
    broker.file("/.hidden", "");
    for path in ["/file", "/dir", "/to-file", "/to-dir", "/dangling", "/fifo", "/.hidden"] {
        dated(broker, path, 951_827_696);
    }
}

#[test]
fn long_lines_look_like_those_of_ls() {
    for by in ways() {
        let mut broker = Broker::new(by);
        furnished(&broker);
        let mut worker = broker.worker();
        let owner = fs::metadata(broker.path("/file")).unwrap();
        let (user, group) = (format!("{:<8}", "alice"), format!("{:<8}", owner.gid()));
        let size = fs::metadata(broker.path("/dir")).unwrap().size();
        let end = "Feb 29  2000";
        assert_eq!(
            lines(&mut worker, "/", Form::Long, false),
            [
                format!("lrwxrwxrwx   1 {user} {group}        4 {end} dangling -> none"),
                format!("drwxr-xr-x   2 {user} {group} {size:>8} {end} dir"),
                format!("prw-r--r--   1 {user} {group}        0 {end} fifo"),
                format!("-rw-r--r--   1 {user} {group}        5 {end} file"),
                format!("lrwxrwxrwx   1 {user} {group}        4 {end} to-dir -> /dir"),
                format!("lrwxrwxrwx   1 {user} {group}        4 {end} to-file -> file"),
            ]
        );
        assert!(lines(&mut worker, "/", Form::Long, true)[0].ends_with(" .hidden"));
    }
}

#[test]
fn strangers_are_shown_by_number() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for by in ways() {
        let mut broker = Broker::new(by);
        fs::write(broker.path("/theirs"), "").unwrap();
        let mut worker = broker.worker();
        assert!(lines(&mut worker, "/", Form::Long, false)[0].starts_with("-rw-r--r--   1 0        0        "));
        let line = &lines(&mut worker, "/", Form::Facts(Facts::EVERY), false)[1];
        assert!(line.contains(";UNIX.owner=0;UNIX.group=0; theirs"), "{line}");
    }
}

#[test]
fn names_alone_are_sorted_by_their_bytes() {
    for by in ways() {
        let mut broker = Broker::new(by);
        furnished(&broker);
        let mut worker = broker.worker();
        let expected = ["dangling", "dir", "fifo", "file", "to-dir", "to-file"];
        assert_eq!(lines(&mut worker, "/", Form::Names, false), expected);
        assert_eq!(lines(&mut worker, "/", Form::Names, true)[0], ".hidden");
    }
}

#[test]
fn facts_tell_every_name_once_with_what_it_leads_to() {
    for by in ways() {
        let mut broker = Broker::new(by);
        furnished(&broker);
        let mut worker = broker.worker();
        assert_eq!(
            lines(&mut worker, "/", TYPE, false),
            [
                "type=cdir; .",
                "type=file; .hidden",
                "type=OS.unix=symlink; dangling",
                "type=dir; dir",
                "type=OS.unix=fifo; fifo",
                "type=file; file",
                "type=dir; to-dir",
                "type=file; to-file",
            ]
        );
        assert_eq!(lines(&mut worker, "/dir", TYPE, false), ["type=cdir; .", "type=pdir; .."]);
        assert_eq!(lines(&mut worker, "/dir", Form::Facts(Facts(0)), false), [" .", " .."]);
        let meta = fs::metadata(broker.path("/file")).unwrap();
        let unique =
            format!("{:x}g{:x}", rustix::fs::major(meta.dev()) << 20 | rustix::fs::minor(meta.dev()), meta.ino());
        let facts = format!(
            "type=file;size=5;modify=20000229123456;perm=adfrw;unique={unique};UNIX.mode=0644;UNIX.owner=alice;UNIX.group={};",
            meta.gid()
        );
        let all = lines(&mut worker, "/", Form::Facts(Facts::EVERY), false);
        assert!(all.contains(&format!("{facts} file")), "{all:#?}");
        assert!(all.contains(&format!("{facts} to-file")), "{all:#?}");
        assert!(all.iter().any(|l| l.starts_with("type=dir;modify=") && l.contains(";perm=cdeflmp;")), "{all:#?}");
    }
}

#[test]
fn one_path_is_described_with_all_of_it_as_the_name() {
    for by in ways() {
        let mut broker = Broker::new(by);
        furnished(&broker);
        broker.file("/dir/x y", "");
        let mut worker = broker.worker();
        let mut line = |path| match worker.ask(Op::Facts { path: at(path), facts: Facts(0b1011) }) {
            Ok((Done::Line(line), None)) => Ok(line.to_string()),
            Ok(other) => panic!("{other:?}"),
            Err(why) => Err(why),
        };
        assert_eq!(line("/").unwrap(), "type=dir;perm=celmp; /");
        assert_eq!(line("/dir/x y").unwrap(), "type=file;size=0;perm=adfrw; /dir/x y");
        assert_eq!(line("/to-file").unwrap(), "type=file;size=5;perm=adfrw; /to-file");
        assert_eq!(line("/to-dir").unwrap(), "type=dir;perm=cdeflmp; /to-dir");
        assert_eq!(line("/dangling").unwrap(), "type=OS.unix=symlink;perm=df; /dangling");
        assert_eq!(line("/fifo").unwrap(), "type=OS.unix=fifo;perm=df; /fifo");
        assert_eq!(line("/none"), Err(Why::NotFound));
    }
}

#[test]
fn the_perm_fact_says_what_the_account_and_the_mode_bits_allow() {
    for by in ways() {
        let permissions = [Permission::List, Permission::Read, Permission::Write, Permission::Rmdir];
        let permissions = permissions.into_iter().fold(Permissions::NONE, Permissions::with);
        let mut broker = Broker::with(&Setting { permissions, ..Setting::new(by) });
        broker.file("/f", "");
        broker.directory("/d");
        broker.file("/closed", "");
        fs::set_permissions(broker.path("/closed"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        let mut worker = broker.worker();
        assert_eq!(
            lines(&mut worker, "/", Form::Facts(Facts(1 << 3)), false),
            ["perm=cel; .", "perm=; closed", "perm=cdel; d", "perm=r; f"]
        );
    }
}

#[test]
fn empty_missing_and_plain_files_are_told_apart() {
    for by in ways() {
        let mut broker = Broker::new(by);
        furnished(&broker);
        broker.directory("/dir/empty");
        let mut worker = broker.worker();
        for form in [Form::Long, Form::Names] {
            assert_eq!(worker.list("/dir/empty", form, false), Ok(Vec::new()));
            assert_eq!(worker.list("/none", form, false), Err(Why::NotFound));
            assert_eq!(worker.list("/file/none", form, false), Err(Why::NotDirectory));
            for path in ["/file", "/fifo", "/to-file", "/dangling"] {
                let lines = lines(&mut worker, path, form, false);
                assert_eq!(lines.len(), 1);
                assert!(lines[0].contains(&path[1..]), "{lines:?}");
            }
        }
        assert_eq!(lines(&mut worker, "/dir/empty", TYPE, false).len(), 2);
        assert_eq!(worker.list("/none", TYPE, false), Err(Why::NotFound));
        assert_eq!(worker.list("/file", TYPE, false), Err(Why::NotDirectory));
        assert_eq!(worker.list("/fifo", TYPE, false), Err(Why::NotDirectory));
    }
}

#[test]
fn a_directory_that_may_be_read_but_not_searched_still_lists_its_names() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/d");
        broker.file("/d/f", "12345");
        fs::set_permissions(broker.path("/d"), std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
        let mut worker = broker.worker();
        assert_eq!(lines(&mut worker, "/d", Form::Names, false), ["f"]);
        assert!(lines(&mut worker, "/d", Form::Long, false)[0].ends_with(" Jan  1  1970 f"));
        fs::set_permissions(broker.path("/d"), std::os::unix::fs::PermissionsExt::from_mode(0o300)).unwrap();
        assert_eq!(worker.list("/d", Form::Names, false), Err(Why::Denied));
    }
}

#[test]
fn a_listing_is_sealed() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "");
        let mut worker = broker.worker();
        let (_, fd) =
            worker.ask(Op::List { path: at("/"), form: Form::Long, hidden: false, written: Blob::default() }).unwrap();
        let fd = fd.unwrap();
        let seals = rustix::fs::fcntl_get_seals(&fd).unwrap();
        assert!(seals.contains(SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL));
        assert!(rustix::io::write(&fd, b"x").is_err() && rustix::fs::ftruncate(&fd, 0).is_err());
    }
}

#[test]
fn ten_thousand_entries_come_whole_and_in_order() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/many");
        for number in 0..10_000 {
            fs::write(broker.path(&format!("/many/file-{number:05}.bin")), "").unwrap();
        }
        give(&broker.path("/many"));
        let mut worker = broker.worker();
        for form in [Form::Long, Form::Names, Form::Facts(Facts::EVERY)] {
            let (mut best, before) = (u128::MAX, broker.cpu());
            for _ in 0..5 {
                let begun = Instant::now();
                worker.ask(Op::List { path: at("/many"), form, hidden: false, written: Blob::default() }).unwrap();
                best = best.min(begun.elapsed().as_micros());
            }
            let cpu = (broker.cpu() - before).as_micros() / 5;
            println!("{by:?} {form:?}: 10,000 entries in {best} us (best of 5), {cpu} us of CPU each (0: not told)");
            let lines = lines(&mut worker, "/many", form, false);
            let extra = if form == Form::Long || form == Form::Names { 0 } else { 2 };
            assert_eq!(lines.len(), 10_000 + extra);
            for (number, line) in lines[extra..].iter().enumerate() {
                assert!(line.ends_with(&format!("file-{number:05}.bin")), "{line}");
            }
        }
    }
}

#[test]
fn long_listings_of_two_workers_at_once_say_of_each_name_what_is_true_of_it() {
    // Neither a whole number of rounds (listing/ahead.rs) nor alike.
    const MANY: usize = 2_450;
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.directory("/many");
        for number in 0..MANY {
            let path = broker.path(&format!("/many/{number:04}"));
            fs::File::create(&path).unwrap().set_len(number as u64).unwrap();
        }
        give(&broker.path("/many"));
        let facts = Facts(Facts::TYPE | Facts::SIZE);
        let expected_facts: Vec<_> = (0..MANY).map(|n| format!("type=file;size={n}; {n:04}")).collect();
        let (mut first, mut second) = (broker.worker(), broker.worker());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(lines(&mut first, "/many", Form::Facts(facts), false)[2..], expected_facts[..]);
                }
            });
            for _ in 0..5 {
                for (number, line) in lines(&mut second, "/many", Form::Long, false).iter().enumerate() {
                    let columns: Vec<_> = line.split_whitespace().collect();
                    assert_eq!((columns[4], columns[8]), (&*number.to_string(), &*format!("{number:04}")), "{line}");
                }
            }
        });
    }
}
