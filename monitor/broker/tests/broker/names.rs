//! Names are bytes: whatever they are, they reach the file they name and no other.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::PathBuf};

use child_ipc::{
    link::worker_broker::{Done, Facts, Form, Op, Why, WriteMode},
    types::Blob,
};

use crate::harness::{Broker, at, at_bytes, ways};

/// Names that have broken servers (traps T10, T14 to T17).
fn awkward() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        &b" lead"[..],
        b"lead",
        b"trail ",
        b"a b  c",
        b"[ temp ]",
        b"a[1]",
        b"x{y}",
        b"q?",
        b"st*r",
        b"~",
        b"-la",
        b"...",
        b"caf\xff",
        b"r\xe4k",
        b"\xed\xa0\x80",
        b"\\..",
        b"%2e%2e",
        b"quote\"'",
        b"semi;colon",
        b"213 End",
        b"tab\there",
        b"a\nb",
        b"a\rb",
        b"a\r\n226 forged",
    ]
    .iter()
    .map(|name| name.to_vec())
    .collect();
    names.push(vec![b'n'; 255]);
    names
}

fn on_disk(broker: &Broker, name: &[u8]) -> PathBuf {
    broker.path("/").join(OsStr::from_bytes(name))
}

#[test]
fn every_operation_reaches_the_file_of_exactly_that_name() {
    for by in ways() {
        let mut broker = Broker::new(by);
        let mut worker = broker.worker();
        for name in awkward() {
            let path = at_bytes(&[b"/", &name[..]].concat());
            let (done, _) =
                worker.ask(Op::OpenWrite { path: path.clone(), mode: WriteMode::Replace, umask: 0 }).unwrap();
            assert!(matches!(done, Done::Opened(opened) if opened.created), "{}", name.escape_ascii());
            assert!(on_disk(&broker, &name).exists(), "{}", name.escape_ascii());
            assert!(worker.ask(Op::OpenRead(path.clone())).is_ok());
            assert!(worker.ask(Op::Stat(path)).is_ok());
        }
        assert_eq!(fs::read_dir(broker.path("/")).unwrap().count(), awkward().len());
        for name in awkward() {
            let path = at_bytes(&[b"/", &name[..]].concat());
            assert_eq!(worker.done(Op::Rename { from: path.clone(), to: at("/moved") }), Ok(()));
            assert_eq!(worker.done(Op::Rename { from: at("/moved"), to: path.clone() }), Ok(()));
            assert_eq!(worker.done(Op::Remove(path.clone())), Ok(()));
            assert_eq!(worker.done(Op::MakeDir(path.clone(), 0)), Ok(()));
            assert_eq!(worker.done(Op::ChangeDir(path.clone())), Ok(()));
            assert_eq!(worker.done(Op::RemoveDir(path)), Ok(()));
        }
        assert_eq!(fs::read_dir(broker.path("/")).unwrap().count(), 0);
    }
}

#[test]
fn a_directory_with_an_awkward_name_lists_its_files() {
    for by in ways() {
        let mut broker = Broker::new(by);
        let mut worker = broker.worker();
        for name in awkward() {
            fs::create_dir(on_disk(&broker, &name)).unwrap();
            for file in ["one", "two"] {
                fs::write(on_disk(&broker, &name).join(file), "").unwrap();
            }
            let path = at_bytes(&[b"/", &name[..]].concat());
            for (form, lines) in [(Form::Long, 2), (Form::Names, 2), (Form::Facts(Facts::EVERY), 4)] {
                let (Done::Listing { bytes, directory: true }, Some(fd)) =
                    worker.ask(Op::List { path: path.clone(), form, hidden: false, written: Blob::default() }).unwrap()
                else {
                    panic!()
                };
                let mut listing = vec![0; usize::try_from(bytes).unwrap()];
                std::os::unix::fs::FileExt::read_exact_at(&fs::File::from(fd), &mut listing, 0).unwrap();
                assert_eq!(listing.iter().filter(|b| **b == b'\n').count(), lines, "{}", name.escape_ascii());
            }
        }
    }
}

#[test]
fn a_name_with_line_ends_forges_no_line() {
    for by in ways() {
        let mut broker = Broker::new(by);
        for name in [&b"a\r\nforged"[..], b"b\nc"] {
            fs::write(on_disk(&broker, name), "").unwrap();
        }
        broker.symlink("/link", "x\r\nforged");
        let mut worker = broker.worker();
        assert_eq!(worker.list("/", Form::Names, false).unwrap(), b"a??forged\r\nb?c\r\nlink\r\n");
        for form in [Form::Long, Form::Facts(Facts::EVERY)] {
            let listing = worker.list("/", form, false).unwrap();
            let lines: Vec<_> = listing.strip_suffix(b"\r\n").unwrap().split(|b| *b == b'\n').collect();
            assert_eq!(lines.len(), if form == Form::Long { 3 } else { 4 });
            assert!(!lines.iter().any(|line| line.starts_with(b"forged")));
        }
        let (Done::Line(line), None) = worker.ask(Op::Facts { path: at_bytes(b"/b\nc"), facts: Facts::EVERY }).unwrap()
        else {
            panic!()
        };
        assert!(line.as_bytes().ends_with(b"; /b?c"));
        assert!(line.as_bytes() == Blob::<5000>::cut(line.as_bytes()).as_bytes());
    }
}

#[test]
fn a_path_of_the_greatest_length_is_answered() {
    for by in ways() {
        let mut broker = Broker::new(by);
        let mut worker = broker.worker();
        let path = format!("/{}", vec!["d".repeat(255); 15].join("/"));
        for depth in 1..=15 {
            let part = &path[..depth * 256];
            assert_eq!(worker.done(Op::MakeDir(at(part), 0)), Ok(()));
        }
        let (done, _) = worker.ask(Op::Facts { path: at(&path), facts: Facts::EVERY }).unwrap();
        assert!(matches!(done, Done::Line(line) if line.as_bytes().ends_with(path.as_bytes())));
        let file = format!("{path}/{}", "f".repeat(254));
        assert_eq!(file.len(), 4095);
        assert!(worker.ask(Op::OpenWrite { path: at(&file), mode: WriteMode::Replace, umask: 0 }).is_ok());
        assert_eq!(worker.done(Op::ChangeDir(at(&file))), Err(Why::Invalid));
        assert_eq!(worker.list(&path, Form::Names, false).unwrap().len(), 256);
    }
}
