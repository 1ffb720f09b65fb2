//! LIST and NLST of a path whose last component has wildcards: only if nothing has that name literally.

use child_ipc::{
    link::worker_broker::{Facts, Form, Why},
    types::{Permission, Permissions},
};

use crate::harness::{Broker, Setting, Worker, ways};

fn names(worker: &mut Worker, path: &str) -> Result<Vec<String>, Why> {
    let listing = String::from_utf8(worker.list_written(path, path, Form::Names, false)?).unwrap();
    let lines = listing.split_terminator("\r\n");
    Ok(lines.map(|line| line.rsplit('/').next().unwrap().to_owned()).collect())
}

#[test]
fn the_literal_name_wins_and_else_the_pattern_lists_entries_themselves() {
    for by in ways() {
        let mut broker = Broker::new(by);
        for file in ["/b.txt", "/a.txt", "/.c.txt", "/a[1]"] {
            broker.file(file, "");
        }
        broker.directory("/d.txt");
        broker.file("/d.txt/inner.txt", "");
        broker.symlink("/dangling.txt", "none");
        let mut worker = broker.worker();
        assert_eq!(names(&mut worker, "/*.txt").unwrap(), ["a.txt", "b.txt", "d.txt", "dangling.txt"]);
        assert_eq!(names(&mut worker, "/.*.txt").unwrap(), [".c.txt"]);
        assert_eq!(names(&mut worker, "/d.txt/*").unwrap(), ["inner.txt"]);
        assert_eq!(names(&mut worker, "/a[1]").unwrap(), ["a[1]"], "it is there");
        broker.file("/a1", "");
        assert_eq!(names(&mut worker, "/a[1]").unwrap(), ["a[1]"], "it still is");
        std::fs::remove_file(broker.path("/a[1]")).unwrap();
        assert_eq!(names(&mut worker, "/a[1]").unwrap(), ["a1"]);
        broker.directory("/*.txt");
        assert!(names(&mut worker, "/*.txt").unwrap().is_empty(), "a directory of that name, and it is empty");
        let long = worker.list_written("/a*", "a*", Form::Long, false).unwrap();
        assert_eq!(String::from_utf8(long).unwrap().matches("\r\n").count(), 2);
    }
}

#[test]
fn wildcards_reach_nothing_that_a_listing_would_not() {
    for by in ways() {
        let mut broker = Broker::new(by);
        broker.file("/f", "");
        broker.directory("/d");
        broker.file("/d/f", "");
        broker.symlink("/up", "../..");
        let mut worker = broker.worker();
        for path in ["/x*", "/*/f", "/d/x*", "/f/*", "/none/*"] {
            assert!(matches!(names(&mut worker, path), Err(Why::NotFound | Why::NotDirectory)), "{path}");
        }
        assert_eq!(names(&mut worker, "/up/*").unwrap(), ["d", "f", "up"]);
        // Nobody who did not ask for them gets any.
        assert_eq!(worker.list("/*", Form::Long, false), Err(Why::NotFound));
        assert_eq!(worker.list_written("/*", "*", Form::Facts(Facts::EVERY), false), Err(Why::NotFound));

        let permissions = Permissions::NONE.with(Permission::Read);
        let mut broker = Broker::with(&Setting { permissions, ..Setting::new(by) });
        broker.file("/f", "");
        assert_eq!(names(&mut broker.worker(), "/*"), Err(Why::Denied));
    }
}
