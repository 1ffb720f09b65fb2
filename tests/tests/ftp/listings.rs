//! LIST, NLST, MLSD, MLST (RFC 959 4.1.3, RFC 3659 7). Names taken literally, kinds of entries, empty and missing directories:
//! tests/traps/listing.rs.

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
    client.in_step();
}

#[test]
fn what_nlst_gives_can_be_used_as_it_is() {
    let Some(daemon) = daemon("NLST with a path") else { return };
    furnished(&daemon);
    daemon.mkdir("alice", "dir/sub");
    daemon.put("alice", "dir/sub/f.txt", b"f");
    daemon.put("alice", "dir/sub/g.txt", b"f");
    let mut client = daemon.login("alice");
    client.expect("CWD dir", &[250]);
    // RFC 1123 4.1.2.7: a complete path, for a transfer command.
    for (line, before) in [
        ("NLST sub", "sub/"),
        ("NLST sub/", "sub/"),
        ("NLST -a sub", "sub/"),
        ("NLST /dir/sub", "/dir/sub/"),
        ("NLST ../dir//sub", "../dir//sub/"),
        ("NLST sub/*.txt", "sub/"),
        ("NLST ./sub/[fg].*", "./sub/"),
        ("NLST /dir/sub/?.txt", "/dir/sub/"),
        ("NLST sub/*.txt/.", "/dir/sub/"),
    ] {
        let names = client.list(line);
        assert_eq!(names, ["f.txt", "g.txt"].map(|name| format!("{before}{name}")), "{line}");
        assert_eq!(client.fetch(format!("RETR {}", names[0])), b"f", "{line}");
    }
    assert_eq!(client.list("NLST sub/f.txt"), ["sub/f.txt"]);
    assert_eq!(client.list("NLST /"), ["/dir", "/empty", "/file"]);
    assert_eq!(client.list("NLST"), ["inner", "sub"]);
    client.expect("CWD sub", &[250]);
    assert_eq!(client.list("NLST *.txt"), ["f.txt", "g.txt"]);
    assert_eq!(client.list("NLST -a"), ["f.txt", "g.txt"]);
    // For people: names alone.
    assert!(client.list("LIST /dir/sub").iter().all(|line| !line.contains('/')));
}

#[test]
fn stat_tells_a_directory_by_212_and_a_file_by_213() {
    let Some(daemon) = daemon("STAT of a path") else { return };
    furnished(&daemon);
    symlink("dir", daemon.home("alice", "to-dir")).expect("symlink");
    symlink("nowhere", daemon.home("alice", "dangling")).expect("symlink");
    let mut client = daemon.login("alice");
    // RFC 959 4.2: 212 directory status, 213 file status.
    for (line, code) in [
        ("STAT /", 212),
        ("STAT .", 212),
        ("STAT -l", 212),
        ("STAT empty", 212),
        ("STAT to-dir", 212),
        ("STAT file", 213),
        ("STAT -l file", 213),
        ("STAT dangling", 213),
        ("STAT missing", 550),
        ("STAT *", 550),
        ("STAT", 211),
    ] {
        client.expect(line, &[code]);
    }
    client.in_step();
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
fn a_name_that_begins_with_a_dash_is_reached_as_with_ls() {
    let Some(daemon) = daemon("dashes") else { return };
    for name in ["-d", "--", "-"] {
        daemon.mkdir("alice", name);
        daemon.put("alice", &format!("{name}/in {name}"), b"");
    }
    let mut client = daemon.login("alice");
    for (path, name) in [("./-d", "-d"), ("-- -d", "-d"), ("-l -- -d", "-d"), ("-- --", "--"), ("-", "-"), ("/-", "-")]
    {
        let lines = client.list(format!("LIST {path}"));
        assert!(lines.len() == 1 && lines[0].ends_with(&format!(" in {name}")), "{path}: {lines:?}");
        assert_eq!(client.list(format!("NLST {path}")).len(), 1, "{path}");
        let reply = client.expect(format!("STAT {path}"), &[211, 212, 213]);
        assert!(reply.inner().iter().any(|line| line.ends_with(&format!(" in {name}"))), "{path}: {reply:?}");
    }
    // No option of MLSD, MLST and the verbs that take a path alone.
    assert!(client.list("MLSD -d").iter().any(|line| line.ends_with(" in -d")));
    client.expect("MLST -d", &[250]);
    client.expect("CWD -d", &[250]);
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
