//! Listings: names taken literally, options, facts, empty and missing directories (RFC 959 4.1.3, RFC 3659 7).

use std::{
    fs,
    os::unix::fs::symlink,
    process::Command,
    time::{Duration, UNIX_EPOCH},
};

use crate::{daemon, daemon_with};

#[test]
fn t10_brackets_braces_and_stars_are_taken_literally() {
    let Some(daemon) = daemon("T10") else { return };
    let names = ["[ temp ]", "a[1]", "x{y}", "q?", "st*r"];
    for name in names {
        daemon.mkdir("alice", name);
        daemon.put("alice", &format!("{name}/one"), b"");
        daemon.put("alice", &format!("{name}/two"), b"");
    }
    let mut client = daemon.login("alice");
    let files = |lines: Vec<String>| lines.iter().filter(|l| l.ends_with("one") || l.ends_with("two")).count();
    for name in names {
        for verb in ["MLSD", "LIST", "NLST"] {
            assert_eq!(files(client.list(format!("{verb} {name}"))), 2, "{verb} {name}");
        }
        client.expect(format!("CWD {name}"), &[250]);
        assert_eq!(files(client.list("LIST")), 2, "CWD {name}");
        client.expect("CWD /", &[250]);
    }
}

#[test]
fn t11_options_are_no_path_and_the_path_behind_them_counts() {
    let Some(daemon) = daemon("T11") else { return };
    daemon.mkdir("alice", "d");
    daemon.put("alice", "d/f", b"");
    daemon.put("alice", "d/.hid", b"");
    let mut client = daemon.login("alice");
    for line in ["LIST -al /d", "LIST -a /d", "NLST -l /d", "LIST -l /d"] {
        assert!(client.list(line).iter().any(|l| l.ends_with('f')), "{line}");
    }
    let reply = client.expect("STAT -l /d", &[211, 212, 213]);
    assert!(reply.inner().iter().any(|l| l.ends_with(" f")), "{reply:?}");
    client.expect("CWD /d", &[250]);
    for line in ["LIST -a", "LIST -la", "LIST -l", "LIST -a "] {
        assert!(client.list(line).iter().any(|l| l.ends_with(" f")), "{line}");
    }
}

/// The facts in front of a name, in lower case.
fn facts<'l>(lines: &'l [String], name: &str) -> Vec<String> {
    let found: Vec<&'l str> = lines.iter().filter_map(|line| line.strip_suffix(&format!("; {name}"))).collect();
    assert_eq!(found.len(), 1, "{name:?} once in {lines:?}");
    found[0].split(';').map(str::to_lowercase).collect()
}

#[test]
fn t12_facts_of_every_kind_of_entry() {
    // Half an hour and more away from UTC, so that local time would show.
    let Some(daemon) = daemon_with("T12", &["listing_time = \"Asia/Kolkata\""]) else { return };
    let file = daemon.put("alice", "file", b"123");
    daemon.mkdir("alice", "dir");
    for (name, target) in [("to-file", "file"), ("to-dir", "dir"), ("dangling", "nowhere")] {
        symlink(target, daemon.home("alice", name)).expect("symlink");
    }
    let made = Command::new("mkfifo").arg(daemon.home("alice", "fifo")).status().expect("mkfifo");
    assert!(made.success());
    let then = UNIX_EPOCH + Duration::from_secs(1_577_934_245);
    fs::File::open(file).and_then(|file| file.set_modified(then)).expect("utimensat");
    let mut client = daemon.login("alice");
    let lines = client.list("MLSD");
    // RFC 3659 7.5.1: cdir is the listed directory alone; 7.5.3: modify is in UTC.
    assert_eq!(lines.iter().filter(|line| line.to_lowercase().contains("type=cdir")).count(), 1, "{lines:?}");
    assert!(facts(&lines, ".").contains(&"type=cdir".to_owned()));
    let kinds = [
        ("file", "type=file"),
        ("dir", "type=dir"),
        ("to-file", "type=file"),
        ("to-dir", "type=dir"),
        ("dangling", "type=os."),
        ("fifo", "type=os."),
    ];
    for (name, kind) in kinds {
        let reply = client.expect(format!("MLST {name}"), &[250]);
        let inner = reply.inner();
        let [line] = &inner[..] else { panic!("{reply:?}") };
        let line = line.strip_prefix(' ').expect("a space in front (RFC 3659 7.2)").to_owned();
        for (lines, name) in [(&lines, name.to_owned()), (&vec![line], format!("/{name}"))] {
            let facts = facts(lines, &name);
            assert!(facts.iter().any(|fact| fact.starts_with(kind)), "{name}: {facts:?}");
            if kind == "type=file" {
                assert!(facts.contains(&"size=3".to_owned()), "{name}: {facts:?}");
                assert!(facts.contains(&"modify=20200102030405".to_owned()), "{name}: {facts:?}");
            }
        }
    }
    assert!(facts(&client.list("MLSD dir"), ".").contains(&"type=cdir".to_owned()));
    assert!(client.expect("FEAT", &[211]).inner().iter().any(|l| l.starts_with(" MLST ")));
    let reply = client.expect("OPTS MLST type;size;", &[200]);
    assert!(reply.text().to_lowercase().contains("type;size;"), "{reply:?}");
    for line in client.list("MLSD") {
        assert!(!line.to_lowercase().contains("modify="), "{line}");
    }
    let feat = client.expect("FEAT", &[211]).inner();
    let mlst = feat.iter().find(|l| l.starts_with(" MLST ")).expect("MLST").to_lowercase();
    assert!(mlst.contains("size*;") && mlst.contains("modify;"), "only the facts in force have a star: {mlst}");
}

#[test]
fn t13_empty_is_226_and_missing_is_not() {
    let Some(daemon) = daemon("T13") else { return };
    daemon.mkdir("alice", "e");
    daemon.put("alice", "file", b"1");
    let mut client = daemon.login("alice");
    for _ in 0..2 {
        for verb in ["NLST", "LIST"] {
            assert_eq!(client.list(format!("{verb} /e")), [""; 0], "{verb}");
            let missing = client.try_fetch(format!("{verb} /none")).expect_err("a missing directory");
            assert!(matches!(missing.code, 450 | 550), "{missing:?}");
            assert_eq!(client.list(format!("{verb} /file")).len(), 1, "{verb} of a file");
        }
        let entries = client.list("MLSD /e");
        assert!(entries.iter().all(|l| l.contains("type=cdir") || l.contains("type=pdir")), "{entries:?}");
        let missing = client.try_fetch("MLSD /none").expect_err("a missing directory");
        assert!(matches!(missing.code, 450 | 550), "{missing:?}");
        let file = client.try_fetch("MLSD /file").expect_err("MLSD of a file");
        assert!(matches!(file.code, 501 | 550), "{file:?}");
        client.expect("STAT /e", &[211, 212, 213]);
        for line in ["MLST /file", "MLST"] {
            let reply = client.expect(line, &[250]);
            assert!(reply.lines[0].starts_with(b"250-") && reply.inner().len() == 1, "{reply:?}");
            assert!(reply.inner()[0].starts_with(' '), "{reply:?}");
        }
        // The second time from inside, without arguments.
        client.expect("CWD /e", &[250]);
        assert_eq!(client.list("NLST"), [""; 0]);
        assert_eq!(client.list("LIST"), [""; 0]);
        let entries = client.list("MLSD");
        assert!(entries.iter().all(|l| l.contains("type=cdir") || l.contains("type=pdir")), "{entries:?}");
        assert_eq!(entries.iter().filter(|l| l.contains("type=cdir")).count(), 1, "{entries:?}");
        assert!(client.expect("STAT .", &[212]).inner().is_empty());
    }
    client.in_step();
}
