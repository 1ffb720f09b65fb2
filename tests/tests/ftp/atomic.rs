//! `atomic_uploads`: a name leads to a whole file or to the one before, whatever happens to the upload.

use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    time::Duration,
};

use e2e::{Daemon, Site, ftp::Client, root_or_skip, slow::Slow, tree, until};
use nix::sys::signal::Signal;

use super::uploads::Small;

fn daemon(scenario: &str) -> Option<Daemon> {
    root_or_skip(scenario).then(|| {
        let mut site = Site::new();
        site.set("atomic_uploads = true");
        Daemon::start(site)
    })
}

/// What a directory holds, hidden names too.
fn names(home: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(home).expect("list").flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Waits until a directory holds exactly these names.
fn settles(home: &Path, expected: &[&str]) {
    until("nothing hidden is left", || (names(home) == expected).then_some(()));
}

/// The hidden file of the upload of `f`, once it has so many bytes.
fn hidden(home: &Path, bytes: u64) -> String {
    until("the bytes are in the hidden file", || {
        let name = names(home).into_iter().find(|name| name.starts_with(".f.caisson-"))?;
        (fs::metadata(home.join(&name)).ok()?.len() == bytes).then_some(name)
    })
}

#[test]
fn an_upload_shows_when_it_is_acknowledged_and_not_before() {
    let Some(daemon) = daemon("atomic uploads") else { return };
    let (old, new) = (tree::content(40_000, 1), tree::content(3 << 20, 2));
    let home = daemon.home("alice", "");
    let path = daemon.put("alice", "f", &old);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("chmod");
    let before = fs::metadata(&path).expect("stat").ino();
    let mut client = daemon.login("alice");
    let mut connection = client.passive();
    client.expect("STOR f", &[150]);
    connection.write_all(&new[..1_000_000]).expect("send");
    hidden(&home, 1_000_000);
    assert!(fs::read(&path).expect("read") == old, "nothing has happened to the file yet");
    assert_eq!(daemon.login("alice").list("NLST"), ["f"]);
    connection.write_all(&new[1_000_000..]).expect("send");
    drop(connection);
    client.expect_reply(&[226]);
    let meta = fs::metadata(&path).expect("stat");
    assert!(fs::read(&path).expect("read") == new);
    assert_eq!((meta.mode() & 0o777, meta.uid()), (0o640, daemon.site.account("alice").uid), "the mode is kept");
    assert_ne!(meta.ino(), before, "it is another file");
    client.stored("STOR made", &old);
    assert_eq!(fs::metadata(daemon.home("alice", "made")).expect("stat").mode() & 0o777, 0o644);
    settles(&home, &["f", "made"]);
}

/// A daemon with this setting too, whose alice lives on a file system of the test's own.
fn on_a_disk_of_ours(scenario: &str, permissions: Option<Vec<&'static str>>) -> Option<(Slow, Daemon)> {
    if !root_or_skip(scenario) {
        return None;
    }
    let mut site = Site::new();
    site.set("atomic_uploads = true");
    let account = site.account_mut("alice");
    account.permissions = permissions.or(account.permissions.take());
    let slow = Slow::new(&account.home, account.uid)?;
    Some((slow, Daemon::start(site)))
}

#[test]
fn what_replaces_a_private_file_is_private_before_its_first_byte() {
    let Some((slow, daemon)) = on_a_disk_of_ours("modes of hidden files", None) else { return };
    for (mode, made) in [(0o600, 0o600), (0o640, 0o640), (0o666, 0o644)] {
        slow.put("f", b"old");
        let path = daemon.home("alice", "f");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        let mut client = daemon.login("alice");
        client.stored("STOR f", b"secret");
        assert_eq!(slow.made_with("f"), Some(made), "{mode:o}: what it is made with");
        assert_eq!(fs::metadata(&path).expect("stat").mode() & 0o777, mode, "what it has in the end");
        client.expect("DELE f", &[250]);
    }
}

/// Begins an upload of `f` and has a part of it arrive.
fn begun(daemon: &Daemon, content: &[u8]) -> (Client, std::net::TcpStream) {
    let mut client = daemon.login("alice");
    let mut connection = client.passive();
    client.expect("STOR f", &[150]);
    connection.write_all(content).expect("send");
    hidden(&daemon.home("alice", ""), content.len() as u64);
    (client, connection)
}

#[test]
fn an_upload_that_is_cut_is_never_published_and_leaves_nothing_behind() {
    let Some(daemon) = daemon("atomic uploads that are cut") else { return };
    let (old, new) = (tree::content(5000, 3), tree::content(700_000, 4));
    let home = daemon.home("alice", "");
    let path = daemon.put("alice", "f", &old);
    let untouched = || {
        settles(&home, &["f"]);
        assert!(fs::read(&path).expect("read") == old);
    };
    // Somebody else of the account is there, so that its broker's link does not end with the session.
    let mut other = daemon.login("alice");
    let (mut client, connection) = begun(&daemon, &new);
    client.expect("ABOR", &[426]);
    client.expect_reply(&[226, 225]);
    untouched();
    drop(connection);
    let (mut client, connection) = begun(&daemon, &new);
    rustix::net::sockopt::set_socket_linger(&connection, Some(Duration::ZERO)).expect("setsockopt");
    drop(connection);
    client.expect_reply(&[426]);
    untouched();
    let (client, connection) = begun(&daemon, &new);
    drop(client);
    untouched();
    drop(connection);
    other.expect("QUIT", &[221]);
    drop(other);
    let (client, connection) = begun(&daemon, &new);
    drop(client);
    untouched();
    drop(connection);
    let (mut client, _connection) = begun(&daemon, &new);
    daemon.worker_of(&client).signal(Signal::SIGKILL);
    assert!(client.reply_or_end().is_none(), "nobody says 226");
    untouched();
    assert!(!daemon.log().contains("result=complete"), "{}", daemon.log());
}

#[test]
fn a_killed_broker_publishes_nothing_and_leaves_its_hidden_file_to_the_next_listing() {
    let Some(daemon) = daemon("a killed broker") else { return };
    let content = tree::content(300_000, 5);
    let (mut client, mut connection) = begun(&daemon, &content);
    daemon.brokers()[0].signal(Signal::SIGKILL);
    daemon.logged(&["broker", "reason"]);
    connection.write_all(&content).expect("send");
    drop(connection);
    client.expect_reply(&[451]);
    client.expect_reply(&[421]);
    let left = names(&daemon.home("alice", ""));
    assert!(left.len() == 1 && left[0].starts_with(".f.caisson-"), "{left:?}");
    let mut next = daemon.login("alice");
    assert_eq!(next.list("NLST"), [""; 0]);
    settles(&daemon.home("alice", ""), &[]);
    daemon.login("alice").stored("STOR f", &content);
    assert!(fs::read(daemon.home("alice", "f")).expect("read") == content);
}

#[test]
fn a_killed_monitor_publishes_nothing_and_leaves_nothing() {
    let Some(mut daemon) = daemon("a killed monitor") else { return };
    let content = tree::content(300_000, 11);
    let (_client, _connection) = begun(&daemon, &content);
    daemon.signal(Signal::SIGKILL);
    daemon.wait();
    assert_eq!(names(&daemon.home("alice", "")), [""; 0]);
}

#[test]
fn who_may_not_overwrite_publishes_where_a_rename_knows_no_flags() {
    let permissions = Some(vec!["read", "write", "list"]);
    let Some((slow, daemon)) = on_a_disk_of_ours("renames without flags", permissions) else { return };
    slow.renames_simply();
    let mut client = daemon.login("alice");
    client.stored("STOR f", b"first");
    assert_eq!((slow.names(), slow.content("f")), (vec!["f".to_owned()], Some(b"first".to_vec())));
    client.refused("STOR f");
    // The name is taken while the upload is under way.
    let connection = client.passive();
    client.expect("STOR g", &[150]);
    slow.put("g", b"theirs");
    drop(connection);
    client.expect_reply(&[550, 553]);
    until("nothing hidden is left", || (slow.names() == ["f", "g"]).then_some(()));
    assert_eq!(slow.content("g"), Some(b"theirs".to_vec()));
}

#[test]
fn an_upload_under_way_is_in_no_listing() {
    let Some(daemon) = daemon("listings beside an upload") else { return };
    daemon.put("alice", ".profile", b"");
    let (mut client, connection) = begun(&daemon, b"begun");
    let mut other = daemon.login("alice");
    for line in ["NLST -a", "LIST -a", "MLSD", "NLST", "LIST"] {
        let lines = other.list(line);
        assert!(!lines.iter().any(|line| line.contains("caisson-")), "{line}: {lines:?}");
        let all = line == "MLSD" || line.ends_with("-a");
        assert_eq!(lines.iter().any(|line| line.contains(".profile")), all, "{line}: {lines:?}");
    }
    let stat = other.expect("STAT -a", &[212, 213, 211]).inner();
    assert!(!stat.iter().any(|line| line.contains("caisson-")), "{stat:?}");
    drop(connection);
    client.expect_reply(&[226]);
}

#[test]
fn nobody_gives_a_file_the_name_of_an_upload_under_way() {
    let Some(daemon) = daemon("names of uploads") else { return };
    daemon.put("alice", "f", b"kept");
    let mut client = daemon.login("alice");
    for line in ["STOR .f.caisson-0123abcd", "APPE .f.caisson-0123abcd", "STOU .f.caisson-0123abcd"] {
        client.refused(line);
    }
    client.refused("MKD .d.caisson-0123abcd");
    client.refused("SITE SYMLINK f .l.caisson-0123abcd");
    for (from, to) in [("RNFR f", "RNTO .f.caisson-0123abcd"), ("SITE CPFR f", "SITE CPTO .f.caisson-0123abcd")] {
        client.expect(from, &[350]);
        client.refused(to);
    }
    client.stored("STOR .f.caisson-0123abcde", b"not one of these");
    settles(&daemon.home("alice", ""), &[".f.caisson-0123abcde", "f"]);
}

#[test]
fn what_a_crash_has_left_goes_when_it_is_met_and_uploads_under_way_stay() {
    let Some(daemon) = daemon("leftovers") else { return };
    let home = daemon.home("alice", "");
    let content = tree::content(100_000, 12);
    for line in ["NLST", "LIST -a", "MLSD"] {
        daemon.put("alice", ".old.caisson-0123abcd", b"left");
        let (mut client, mut connection) = begun(&daemon, &content[..50_000]);
        daemon.login("alice").list(line);
        assert!(!names(&home).contains(&".old.caisson-0123abcd".to_owned()), "{line}");
        connection.write_all(&content[50_000..]).expect("send");
        drop(connection);
        client.expect_reply(&[226]);
        assert!(fs::read(home.join("f")).expect("read") == content);
    }
    // Neither another's file, nor what is no file, nor what is called almost so.
    fs::write(home.join(".theirs.caisson-00000000"), b"x").expect("write");
    symlink("f", home.join(".l.caisson-00000000")).expect("symlink");
    daemon.mkdir("alice", ".d.caisson-00000000");
    for name in [".x.caisson-0000000", ".x.caisson-0000000g", "x.caisson-00000000", ".caisson-00000000"] {
        daemon.put("alice", name, b"x");
    }
    let before = names(&home);
    let mut client = daemon.login("alice");
    client.list("MLSD");
    assert_eq!(names(&home), before);
    // Whoever removes a directory has not seen them.
    daemon.mkdir("alice", "d");
    daemon.put("alice", "d/.old.caisson-0123abcd", b"left");
    client.expect("RMD d", &[250]);
    daemon.mkdir("alice", "d");
    daemon.put("alice", "d/g", b"kept");
    client.refused("RMD d");
    client.expect("DELE d/g", &[250]);
    let mut connection = client.passive();
    client.expect("STOR d/g", &[150]);
    connection.write_all(b"x").expect("send");
    daemon.login("alice").refused("RMD d");
    drop(connection);
    client.expect_reply(&[226]);
}

#[test]
fn who_may_write_nothing_removes_nothing_by_listing() {
    if !root_or_skip("leftovers and permissions") {
        return;
    }
    let mut site = Site::new();
    site.set("atomic_uploads = true");
    site.account_mut("alice").permissions = Some(vec!["read", "list", "delete", "rmdir"]);
    let daemon = Daemon::start(site);
    daemon.put("alice", ".old.caisson-0123abcd", b"left");
    daemon.login("alice").list("MLSD");
    assert_eq!(names(&daemon.home("alice", "")), [".old.caisson-0123abcd"]);
}

#[test]
fn a_full_disk_is_told_and_the_file_before_stays() {
    if !root_or_skip("a full disk") {
        return;
    }
    let mut site = Site::new();
    site.set("atomic_uploads = true");
    let account = site.account("alice");
    let small = Small::new(&account.home, account.uid, 1 << 20);
    let daemon = Daemon::start(site);
    let _small = small;
    let mut client = daemon.login("alice");
    let old = tree::content(300_000, 6);
    client.stored("STOR f", &old);
    for kind in ["TYPE I", "TYPE A"] {
        client.expect(kind, &[200]);
        let mut connection = client.passive();
        client.expect("STOR f", &[150]);
        let _ = connection.write_all(&tree::content(3 << 20, 7));
        drop(connection);
        client.expect_reply(&[452, 552]);
        settles(&daemon.home("alice", ""), &["f"]);
        assert!(fs::read(daemon.home("alice", "f")).expect("read") == old);
    }
    client.expect("TYPE I", &[200]);
    client.stored("STOR f", &old[..200_000]);
    client.in_step();
}

#[test]
fn what_an_account_may_not_write_it_may_not_replace_either() {
    if !root_or_skip("permissions") {
        return;
    }
    let mut site = Site::new();
    site.set("atomic_uploads = true");
    site.account_mut("alice").permissions = Some(vec!["write"]);
    site.account_mut("bob").permissions = Some(vec!["read", "write", "overwrite", "list"]);
    let daemon = Daemon::start(site);
    let mut alice = daemon.login("alice");
    alice.stored("STOR f", b"first");
    alice.refused("STOR f");
    assert_eq!(fs::read(daemon.home("alice", "f")).expect("read"), b"first");
    // The name is taken while the upload is under way.
    let mut connection = alice.passive();
    alice.expect("STOR g", &[150]);
    connection.write_all(b"mine").expect("send");
    daemon.put("alice", "g", b"theirs");
    drop(connection);
    alice.expect_reply(&[550, 553]);
    assert_eq!(fs::read(daemon.home("alice", "g")).expect("read"), b"theirs");
    alice.refused("DELE f");
    settles(&daemon.home("alice", ""), &["f", "g"]);
    let mut bob = daemon.login("bob");
    let kept = daemon.put("bob", "kept", b"read only");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o444)).expect("chmod");
    bob.refused("STOR kept");
    daemon.mkdir("bob", "d");
    bob.refused("STOR d");
    bob.refused("STOR /");
    bob.refused("STOR none/f");
    bob.refused("DELE kept");
    settles(&daemon.home("bob", ""), &["d", "kept"]);
}

#[test]
fn other_ways_to_write_work_as_ever() {
    let Some(daemon) = daemon("APPE, REST, STOU beside atomic uploads") else { return };
    let home = daemon.home("alice", "");
    let content = tree::content(200_000, 8);
    let mut client = daemon.login("alice");
    client.stored("STOR f", &content[..100_000]);
    client.stored("APPE f", &content[100_000..150_000]);
    client.expect("REST 150000", &[350]);
    client.stored("STOR f", &content[150_000..]);
    assert!(fs::read(home.join("f")).expect("read") == content);
    client.stored("STOU u", &content);
    client.stored("STOU u", &content);
    assert_eq!(names(&home).len(), 3);
    // A link is written through.
    symlink("f", home.join("link")).expect("symlink");
    client.stored("STOR link", b"through");
    assert_eq!(fs::read(home.join("f")).expect("read"), b"through");
    assert!(fs::symlink_metadata(home.join("link")).expect("stat").is_symlink());
    let long = "n".repeat(255);
    client.stored(format!("STOR {long}"), &content);
    assert!(fs::read(home.join(long)).expect("read") == content);
    client.stored("STOR empty", b"");
    assert_eq!(fs::metadata(home.join("empty")).expect("stat").len(), 0);
    client.in_step();
}

#[test]
fn of_two_uploads_of_one_name_the_one_that_ends_last_stays_whole() {
    let Some(daemon) = daemon("two uploads of one name") else { return };
    let (first, second) = (tree::content(400_000, 9), tree::content(300_000, 10));
    let (mut one, mut connection) = begun(&daemon, &first[..200_000]);
    let mut two = daemon.login("alice");
    two.stored("STOR f", &second);
    assert!(fs::read(daemon.home("alice", "f")).expect("read") == second);
    connection.write_all(&first[200_000..]).expect("send");
    drop(connection);
    one.expect_reply(&[226]);
    assert!(fs::read(daemon.home("alice", "f")).expect("read") == first);
}
