//! LIST, NLST, MLSD, MLST (RFC 959 4.1.3, RFC 3659 7).

use std::os::unix::fs::symlink;

use e2e::Daemon;

use crate::daemon;

fn furnished(daemon: &Daemon) {
    daemon.put("alice", "file", b"12345");
    daemon.put("alice", ".hidden", b"");
    daemon.mkdir("alice", "dir");
    daemon.put("alice", "dir/inner", b"");
    daemon.mkdir("alice", "empty");
}

#[test]
fn list_looks_like_ls_and_nlst_gives_names() {
    let Some(daemon) = daemon("LIST, NLST") else { return };
    furnished(&daemon);
    let mut client = daemon.login("alice");
    let lines = client.list("LIST");
    assert_eq!(lines.len(), 3, "{lines:?}");
    let file = lines.iter().find(|l| l.ends_with(" file")).expect("file is listed");
    let words: Vec<&str> = file.split_whitespace().collect();
    assert!(words[0] == "-rw-r--r--" && words[4] == "5" && words.len() == 9, "{file}");
    assert!(lines.iter().any(|l| l.starts_with("drwx") && l.ends_with(" dir")), "{lines:?}");
    let mut names = client.list("NLST");
    names.sort();
    assert_eq!(names, ["dir", "empty", "file"]);
    let names = client.list("NLST dir");
    assert!(names == ["inner"] || names == ["dir/inner"], "{names:?}");
}

#[test]
fn options_in_front_of_the_path_are_no_path() {
    let Some(daemon) = daemon("LIST options") else { return };
    furnished(&daemon);
    let mut client = daemon.login("alice");
    for line in ["LIST -a", "LIST -la", "LIST -al /"] {
        assert!(client.list(line).iter().any(|l| l.ends_with(" .hidden")), "{line}");
    }
    for line in ["LIST -l", "LIST -l /", "LIST -1 ", "LIST -L /"] {
        assert_eq!(client.list(line).len(), 3, "{line}");
    }
    assert_eq!(client.list("LIST -l dir").len(), 1);
    assert_eq!(client.list("LIST -a dir").iter().filter(|l| l.ends_with(" inner")).count(), 1);
}

#[test]
fn empty_directories_list_nothing_and_missing_ones_are_refused() {
    let Some(daemon) = daemon("empty listings") else { return };
    furnished(&daemon);
    let mut client = daemon.login("alice");
    for verb in ["LIST", "NLST"] {
        assert_eq!(client.list(format!("{verb} empty")), [""; 0], "{verb}");
        let refused = client.try_fetch(format!("{verb} missing")).expect_err("a missing directory");
        assert!(matches!(refused.code, 450 | 550), "{verb}: {refused:?}");
        assert_eq!(client.list(format!("{verb} file")).len(), 1, "{verb} of a file");
    }
    let entries = client.list("MLSD empty");
    assert!(entries.iter().all(|l| l.contains("type=cdir") || l.contains("type=pdir")), "{entries:?}");
    let refused = client.try_fetch("MLSD file").expect_err("MLSD of a file");
    assert!(matches!(refused.code, 501 | 550), "{refused:?}");
    client.in_step();
}

#[test]
fn mlsd_gives_facts_one_space_and_the_name() {
    let Some(daemon) = daemon("MLSD") else { return };
    furnished(&daemon);
    daemon.put("alice", " lead", b"");
    symlink("nowhere", daemon.home("alice", "dangling")).expect("symlink");
    let mut client = daemon.login("alice");
    client.expect("MFMT 20200102030405 file", &[213]);
    let lines = client.list("MLSD");
    let facts_of = |name: &str| {
        let found: Vec<&str> = lines.iter().filter_map(|l| l.strip_suffix(&format!("; {name}"))).collect();
        assert_eq!(found.len(), 1, "{name:?} once in {lines:?}");
        found[0].to_lowercase()
    };
    let file = facts_of("file");
    for fact in ["type=file", "size=5", "modify=20200102030405"] {
        assert!(file.split(';').any(|f| f == fact), "{fact}: {file}");
    }
    assert!(facts_of("dir").contains("type=dir"));
    assert!(facts_of(" lead").contains("type=file"));
    facts_of("dangling");
}

#[test]
fn mlst_answers_on_the_control_connection() {
    let Some(daemon) = daemon("MLST") else { return };
    furnished(&daemon);
    let mut client = daemon.login("alice");
    for (line, name, kind) in
        [("MLST file", "file", "type=file"), ("MLST", "/", "dir"), ("MLST dir", "dir", "type=dir")]
    {
        let reply = client.expect(line, &[250]);
        let inner = reply.inner();
        assert_eq!(inner.len(), 1, "{reply:?}");
        assert!(inner[0].starts_with(' ') && inner[0].ends_with(name) && inner[0].contains(kind), "{reply:?}");
    }
    client.expect("MLST missing", &[550]);
}

#[test]
fn brackets_and_stars_are_letters() {
    let Some(daemon) = daemon("brackets") else { return };
    let names = ["[ temp ]", "a[1]", "x{y}", "q?", "st*r"];
    for name in names {
        daemon.mkdir("alice", name);
        daemon.put("alice", &format!("{name}/one"), b"");
        daemon.put("alice", &format!("{name}/two"), b"");
    }
    let mut client = daemon.login("alice");
    for name in names {
        assert_eq!(client.list(format!("LIST {name}")).len(), 2, "{name}");
        assert_eq!(client.list(format!("NLST {name}")).len(), 2, "{name}");
        client.expect(format!("CWD {name}"), &[250]);
        assert_eq!(client.list("LIST").len(), 2, "{name}");
        client.expect("CDUP", &[200, 250]);
    }
}

#[test]
fn a_directory_of_ten_thousand_files_is_listed_whole() {
    let Some(daemon) = daemon("large directory") else { return };
    for number in 0..10_000 {
        std::fs::write(daemon.home("alice", &format!("file-{number:05}")), b"").expect("create");
    }
    let mut client = daemon.login("alice");
    for line in ["LIST", "NLST", "MLSD"] {
        let lines = client.list(line);
        let files = lines.iter().filter(|l| l.contains("file-")).count();
        assert_eq!(files, 10_000, "{line}");
    }
}
