//! Files and directories without a transfer: CWD, PWD, MKD, RMD, DELE, RNFR, SIZE, MDTM, MFMT, SITE CHMOD.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use crate::daemon;

#[test]
fn directories_are_entered_left_and_named() {
    let Some(daemon) = daemon("CWD") else { return };
    daemon.mkdir("alice", "a");
    daemon.mkdir("alice", "a/b");
    daemon.put("alice", "file", b"");
    let mut client = daemon.login("alice");
    client.expect("CWD a/b", &[250]);
    assert_eq!(client.pwd(), b"/a/b");
    client.expect("CDUP", &[200, 250]);
    assert_eq!(client.pwd(), b"/a");
    client.expect("XCWD /a/b", &[250]);
    client.expect("XCUP", &[200, 250]);
    client.expect("XPWD", &[257]);
    client.expect("CWD ..", &[250]);
    client.expect("CWD ../../..", &[250]);
    assert_eq!(client.pwd(), b"/", "the root is its own parent");
    client.expect("CWD missing", &[550]);
    client.expect("CWD file", &[550]);
    assert_eq!(client.pwd(), b"/");
}

#[test]
fn a_quote_in_a_name_is_doubled_in_257() {
    let Some(daemon) = daemon("quotes") else { return };
    let mut client = daemon.login("alice");
    let reply = client.expect("MKD say \"hi\"", &[257]);
    assert!(String::from_utf8_lossy(&reply.lines[0]).starts_with("257 \"/say \"\"hi\"\"\""), "{reply:?}");
    client.expect("CWD say \"hi\"", &[250]);
    assert_eq!(client.pwd(), b"/say \"hi\"");
}

#[test]
fn directories_are_made_and_removed() {
    let Some(daemon) = daemon("MKD, RMD") else { return };
    let mut client = daemon.login("alice");
    client.expect("MKD d", &[257]);
    client.expect("XMKD d/e", &[257]);
    client.expect("MKD d", &[550, 521]);
    client.expect("MKD no/parent", &[550]);
    client.expect("RMD d", &[550]);
    client.expect("XRMD d/e", &[250]);
    client.expect("RMD d", &[250]);
    client.expect("RMD d", &[550]);
    client.expect("RMD /", &[550]);
    assert!(!daemon.home("alice", "d").exists());
}

#[test]
fn what_is_made_belongs_to_the_account_and_obeys_the_umask() {
    let Some(daemon) = daemon("ownership") else { return };
    let mut client = daemon.login("alice");
    client.expect("MKD d", &[257]);
    client.stored("STOR d/f", b"x");
    let uid = daemon.site.account("alice").uid;
    for (path, mode) in [("d", 0o755), ("d/f", 0o644)] {
        let meta = fs::metadata(daemon.home("alice", path)).expect("stat");
        assert_eq!((meta.uid(), meta.gid(), meta.permissions().mode() & 0o7777), (uid, uid, mode), "{path}");
    }
}

#[test]
fn files_are_deleted_and_directories_are_not() {
    let Some(daemon) = daemon("DELE") else { return };
    daemon.put("alice", "f", b"");
    daemon.mkdir("alice", "d");
    symlink("d", daemon.home("alice", "link")).expect("symlink");
    let mut client = daemon.login("alice");
    client.expect("DELE f", &[250]);
    client.expect("DELE f", &[550]);
    client.expect("DELE d", &[550]);
    client.expect("DELE link", &[250]);
    assert!(daemon.home("alice", "d").is_dir(), "a link is deleted, not what it leads to");
}

#[test]
fn renaming_takes_two_commands_in_a_row() {
    let Some(daemon) = daemon("RNFR") else { return };
    daemon.put("alice", "a", b"content of a");
    daemon.mkdir("alice", "d");
    let mut client = daemon.login("alice");
    client.expect("RNTO b", &[503]);
    client.expect("RNFR missing", &[550]);
    client.expect("RNTO b", &[503]);
    client.expect("RNFR a", &[350]);
    client.expect("RNTO no/such/dir", &[550, 553]);
    client.expect("RNTO b", &[503]);
    client.expect("RNFR a", &[350]);
    client.expect("RNTO d/b", &[250]);
    client.expect("RNFR d", &[350]);
    client.expect("RNTO e", &[250]);
    assert_eq!(fs::read(daemon.home("alice", "e/b")).expect("renamed"), b"content of a");
}

#[test]
fn size_and_mdtm_tell_of_files_only() {
    let Some(daemon) = daemon("SIZE, MDTM") else { return };
    daemon.put("alice", "f", &[0; 12_345]);
    daemon.mkdir("alice", "d");
    let big = fs::File::create(daemon.home("alice", "sparse")).expect("create");
    big.set_len(5 << 30).expect("truncate");
    let mut client = daemon.login("alice");
    assert_eq!(client.expect("SIZE f", &[213]).text(), "12345");
    assert_eq!(client.expect("SIZE sparse", &[213]).text(), "5368709120");
    client.expect("SIZE d", &[550]);
    client.expect("SIZE missing", &[550]);
    client.expect("MDTM missing", &[550]);
    client.expect("MFMT 20010203040506 f", &[213]);
    assert_eq!(client.expect("MDTM f", &[213]).text(), "20010203040506");
    assert_eq!(fs::metadata(daemon.home("alice", "f")).expect("stat").mtime(), 981_173_106);
    client.expect("MFMT 20011303040506 f", &[501, 504]);
    client.expect("MFMT now f", &[501, 504]);
    assert_eq!(client.expect("MDTM f", &[213]).text(), "20010203040506");
}

#[test]
fn site_chmod_sets_permission_bits_and_nothing_else() {
    let Some(daemon) = daemon("SITE CHMOD") else { return };
    let file = daemon.put("alice", "f", b"");
    let mode = || fs::metadata(&file).expect("stat").permissions().mode() & 0o7777;
    let mut client = daemon.login("alice");
    client.expect("SITE CHMOD 640 f", &[200, 250]);
    assert_eq!(mode(), 0o640);
    client.expect("site chmod 0600 f", &[200, 250]);
    assert_eq!(mode(), 0o600);
    for line in [
        "SITE CHMOD 4755 f",
        "SITE CHMOD 2755 f",
        "SITE CHMOD 999 f",
        "SITE CHMOD f",
        "SITE CHMOD",
        "SITE CHMOD 77777 f",
    ] {
        client.refused(line);
        assert_eq!(mode(), 0o600, "{line}");
    }
    client.expect("SITE CHMOD 600 missing", &[550]);
}

#[test]
fn names_are_kept_byte_for_byte() {
    let Some(daemon) = daemon("names") else { return };
    let mut client = daemon.login("alice");
    let names: [&[u8]; 7] =
        [b" lead", b"a b  c", b"it's", "gr\u{fc}n".as_bytes(), b"latin-\xe4", b"[x]{y}*?", b"-dash"];
    for name in names {
        let line = |verb: &str| [verb.as_bytes(), b" ", name].concat();
        client.stored(line("STOR"), name);
        assert_eq!(client.expect(line("SIZE"), &[213]).text(), name.len().to_string());
        assert_eq!(client.fetch(line("RETR")), name);
        assert!(daemon.site.account("alice").home.join(e2e::tree::raw(name)).exists());
        client.expect(line("DELE"), &[250]);
    }
}
