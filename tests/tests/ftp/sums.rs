//! HASH, OPTS HASH, RANG (draft-bryan-ftpext-hash, draft-bryan-ftp-range), XCRC, XMD5, XSHA1, XSHA256, XSHA512.

use std::{fs, process::Command, time::Duration};

use e2e::{Daemon, Site, root_or_skip, tree};

use crate::daemon;

/// The sum as the coreutils compute it.
fn sum_of(program: &str, content: &[u8]) -> String {
    let file = std::env::temp_dir().join(format!("caisson-sum-{}-{program}-{}", std::process::id(), content.len()));
    fs::write(&file, content).expect("write");
    let said = Command::new(program).arg(&file).output().expect("coreutils").stdout;
    let _ = fs::remove_file(&file);
    String::from_utf8_lossy(&said).split(' ').next().expect("a sum").trim_start_matches('\\').to_owned()
}

const ALGORITHMS: [(&str, &str, &str); 4] = [
    ("SHA-256", "XSHA256", "sha256sum"),
    ("SHA-512", "XSHA512", "sha512sum"),
    ("SHA-1", "XSHA1", "sha1sum"),
    ("MD5", "XMD5", "md5sum"),
];

#[test]
fn sums_are_those_of_the_coreutils_whole_and_in_part() {
    let Some(daemon) = daemon("HASH") else { return };
    let content = tree::content(1_000_003, 11);
    daemon.put("alice", "some file", &content);
    let mut client = daemon.login("alice");
    for (name, verb, program) in ALGORITHMS {
        let (whole, part) = (sum_of(program, &content), sum_of(program, &content[70_000..=700_000]));
        assert_eq!(client.expect(format!("OPTS HASH {name}"), &[200]).text(), name);
        let hash = |range: &str, sum: &str| format!("{name} {range} {sum} /some file");
        assert_eq!(client.expect("HASH some file", &[213]).text(), hash("0-1000002", &whole));
        client.expect("RANG 70000 700000", &[350]);
        assert_eq!(client.expect("HASH some file", &[213]).text(), hash("70000-700000", &part));
        assert_eq!(client.expect("HASH some file", &[213]).text(), hash("0-1000002", &whole), "RANG is spent");
        let upper = |sum: &str| sum.to_uppercase();
        assert_eq!(client.expect(format!("{verb} some file"), &[250]).text(), upper(&whole));
        assert_eq!(client.expect(format!("{verb} \"some file\" 70000 700001"), &[250]).text(), upper(&part));
        assert_eq!(client.expect(format!("{verb} some file 70000 700001"), &[250]).text(), upper(&part));
    }
}

#[test]
fn the_crc_is_that_of_zip_and_an_empty_file_has_one() {
    let Some(daemon) = daemon("XCRC") else { return };
    daemon.put("alice", "check", b"x123456789");
    daemon.put("alice", "empty", b"");
    let mut client = daemon.login("alice");
    // The check value of CRC-32/ISO-HDLC.
    assert_eq!(client.expect("XCRC \"check\" 1", &[250]).text(), "CBF43926");
    assert_eq!(client.expect("XCRC empty", &[250]).text(), "00000000");
    client.expect("OPTS HASH CRC32", &[200]);
    assert_eq!(client.expect("HASH empty", &[213]).text(), "CRC32 0-0 00000000 /empty");
}

#[test]
fn feat_tells_the_algorithm_in_force() {
    let Some(daemon) = daemon("OPTS HASH") else { return };
    let mut client = daemon.login("alice");
    let line = |client: &mut e2e::ftp::Client| {
        client.expect("FEAT", &[211]).inner().into_iter().find(|line| line.starts_with(" HASH ")).expect("HASH")
    };
    assert_eq!(line(&mut client), " HASH SHA-256*;SHA-512;SHA-1;MD5;CRC32;");
    assert_eq!(client.expect("OPTS HASH", &[200]).text(), "SHA-256");
    assert_eq!(client.expect("opts hash sha-1", &[200]).text(), "SHA-1");
    client.expect("OPTS HASH CRC-37", &[501]);
    assert_eq!(line(&mut client), " HASH SHA-256;SHA-512;SHA-1*;MD5;CRC32;");
}

#[test]
fn what_has_no_sum_is_refused_with_the_draft_s_codes() {
    if !root_or_skip("refused sums") {
        return;
    }
    let mut site = Site::new();
    site.account_mut("bob").permissions = Some(vec!["write", "overwrite", "list"]);
    let daemon = Daemon::start(site);
    for name in ["alice", "bob"] {
        daemon.put(name, "f", b"12345");
        daemon.mkdir(name, "d");
    }
    let mut client = daemon.login("alice");
    for (line, code) in [
        ("HASH d", 553),
        ("HASH missing", 550),
        ("HASH", 501),
        ("XCRC", 501),
        ("XCRC d", 550),
        ("XMD5 missing", 550),
        ("XCRC \"f\" 0 6", 550),
        ("XCRC \"f\" 6", 550),
        ("XCRC f 3 2", 501),
        ("XCRC \"f", 501),
        ("RANG 2 1", 501),
        ("RANG", 501),
        ("RANG 1 0", 350),
        ("RANG 0 18446744073709551615", 501),
    ] {
        client.expect(line, &[code]);
    }
    client.expect("RANG 5 9", &[350]);
    client.expect("HASH f", &[554]);
    assert!(client.expect("XMD5 \"f\" 5 5", &[250]).text().starts_with("D41D8CD98F00B204"), "nothing, summed");
    let mut client = daemon.login("bob");
    client.expect("HASH f", &[552]);
    for line in ["XCRC f", "XMD5 f", "XSHA1 f", "XSHA256 f", "XSHA512 f"] {
        client.expect(line, &[550]);
    }
    let mut client = daemon.connect();
    client.expect("HASH f", &[530]);
    client.expect("XSHA512 f", &[530]);
}

#[test]
fn rang_holds_for_one_download_and_for_no_upload() {
    let Some(daemon) = daemon("RANG") else { return };
    let content = tree::content(100_000, 12);
    daemon.put("alice", "f", &content);
    let mut client = daemon.login("alice");
    for (range, expected) in [
        ("0 0", &content[..1]),
        ("10 49999", &content[10..50_000]),
        ("99999 500000", &content[99_999..]),
        ("100000 500000", &content[..0]),
        ("1 0", &content[..]),
    ] {
        client.expect(format!("RANG {range}"), &[350]);
        assert!(client.fetch("RETR f") == expected, "RANG {range}");
        assert!(client.fetch("RETR f") == content, "RANG {range} is spent");
    }
    for verb in ["STOR", "APPE", "STOU"] {
        client.expect("RANG 0 9", &[350]);
        assert_eq!(client.store(format!("{verb} f"), b"x").code, 554, "{verb}");
    }
    client.expect("TYPE A", &[200]);
    client.expect("RANG 0 9", &[350]);
    assert_eq!(client.try_fetch("RETR f").expect_err("a refusal").code, 551);
    assert!(fs::read(daemon.home("alice", "f")).expect("read") == content);
}

#[test]
fn a_long_sum_holds_up_nobody_and_is_cut_by_abor() {
    if !root_or_skip("a long sum") {
        return;
    }
    let mut site = Site::new();
    site.set("workers = 1");
    let daemon = Daemon::start(site);
    let big = fs::File::create(daemon.home("alice", "big")).expect("create");
    big.set_len(1 << 40).expect("a sparse file nobody can sum in time");
    daemon.put("alice", "small", &tree::content(1 << 20, 13));
    let (mut summing, mut other) = (daemon.login("alice"), daemon.login("alice"));
    summing.send("HASH big");
    assert_eq!(other.fetch("RETR small").len(), 1 << 20);
    other.expect("XMD5 small", &[250]);
    assert!(summing.is_silent_for(Duration::from_millis(50)), "the sum is not done yet");
    summing.send("STAT");
    assert!(summing.expect_reply(&[211]).text().starts_with("HASH in progress"));
    summing.send("ABOR");
    summing.expect_reply(&[426]);
    summing.expect_reply(&[226]);
    summing.in_step();
    // One that leaves in the middle takes its work along.
    summing.send("XSHA512 big");
    drop(summing);
    daemon.logged(&["disconnect"]);
    other.in_step();
}
