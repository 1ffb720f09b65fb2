//! Control bytes in names: shown as `?` where people read, kept where clients send the name back; no CR, LF or NUL leaves
//! anywhere (SECURITY.md, RFC 2640 3.1).

use std::{fs, os::unix::fs::symlink};

use e2e::tree::raw;

use crate::daemon;

/// Clears a terminal, rings, and has bytes that are no control bytes of ASCII: tab is one, but harmless.
const NAME: &[u8] = b"\x1b[2Ja\x07\x7f\tb\xc2\x9b";
const SHOWN: &[u8] = b"?[2Ja??\tb\xc2\x9b";

fn has(lines: &[u8], name: &[u8]) -> bool {
    lines.windows(name.len()).any(|window| window == name)
}

#[test]
fn control_bytes_of_a_name_leave_only_where_a_client_sends_it_back() {
    let Some(daemon) = daemon("control bytes") else { return };
    let home = daemon.site.account("alice").home.clone();
    fs::create_dir(home.join("d")).expect("mkdir");
    fs::write(home.join("d").join(raw(NAME)), b"x").expect("write");
    fs::write(home.join("d").join(raw(b"forged\r\n213 End\nx")), b"").expect("write");
    symlink(raw(b"to\r\n213 End"), home.join("d/link")).expect("symlink");
    for path in [home.join("d"), home.join("d").join(raw(NAME))] {
        e2e::site::give(&path, daemon.site.account("alice").uid);
    }
    let with = |verb: &[u8], name: &[u8]| [verb, b" ", name].concat();
    let path = [b"d/", NAME].concat();
    let mut client = daemon.login("alice");

    for verb in [&b"LIST"[..], b"NLST", b"MLSD"] {
        let listing = client.fetch(with(verb, b"d"));
        assert!(has(&listing, NAME), "{}", listing.escape_ascii());
        assert!(has(&listing, b"forged??213 End?x\r\n"), "{}", listing.escape_ascii());
        let mut lines = listing.split(|&b| b == b'\n').filter(|line| !line.is_empty());
        assert!(lines.all(|line| line.ends_with(b"\r") && !line.starts_with(b"213")), "{}", listing.escape_ascii());
    }
    assert!(has(&client.expect(with(b"MLST", &path), &[250]).lines[1], NAME));
    client.expect("CWD d", &[250]);
    client.expect(with(b"DELE", NAME), &[250]);
    let made = client.expect(with(b"MKD", NAME), &[257]);
    assert!(has(&made.lines[0], NAME), "{made:?}");
    client.expect(with(b"CWD", NAME), &[250]);
    assert_eq!(client.pwd(), [b"/d/", NAME].concat());
    client.expect("CWD /d", &[250]);
    client.expect(with(b"RMD", NAME), &[250]);
    let mut data = client.passive();
    let begun = client.expect(with(b"STOU", NAME), &[150]);
    assert!(begun.lines[0].ends_with(&[b"FILE: ", NAME].concat()), "{begun:?}");
    std::io::Write::write_all(&mut data, b"y").expect("send");
    drop(data);
    let stored = client.expect_reply(&[226]);
    assert_eq!(client.fetch(with(b"RETR", NAME)), b"y");

    // For people only.
    let status = client.expect("STAT /d", &[212]);
    let modified = client.expect(with(b"MFMT 20200102030405", NAME), &[213]);
    let sum = client.expect(with(b"HASH", NAME), &[213]);
    let of_one = client.expect(with(b"STAT", NAME), &[213]);
    for reply in [stored, status, modified, sum, of_one] {
        assert!(reply.lines.iter().any(|line| has(line, SHOWN)), "{reply:?}");
        let control = |b: &u8| b.is_ascii_control() && *b != b'\t';
        assert!(!reply.lines.iter().flatten().any(control), "{reply:?}");
    }
    client.refused(with(b"RETR", b"\x1b[2J missing"));
    client.in_step();
}
