//! TYPE and SIZE (RFC 959 3.1.1, 5.1; RFC 3659 4).

use crate::{daemon, sparse};

#[test]
fn t24_size_in_ascii_is_the_transferred_count_or_a_refusal_that_says_so() {
    let Some(daemon) = daemon("T24") else { return };
    daemon.put("alice", "lines", b"one\ntwo\nthree\n");
    daemon.mkdir("alice", "dir");
    sparse(&daemon, "sparse", 5 << 30);
    let mut client = daemon.login("alice");
    client.expect("TYPE A", &[200]);
    let size = client.ask("SIZE lines");
    let sent = client.fetch("RETR lines");
    assert_eq!(sent, b"one\r\ntwo\r\nthree\r\n");
    match size.code {
        213 => assert_eq!(size.text(), sent.len().to_string()),
        550 => assert!(size.text().to_uppercase().contains("ASCII"), "{size:?}"),
        _ => panic!("{size:?}"),
    }
    client.expect("SIZE missing", &[550]);
    client.expect("SIZE dir", &[550]);
    client.expect("TYPE I", &[200]);
    assert_eq!(client.expect("SIZE lines", &[213]).text(), "14");
    assert_eq!(client.fetch("RETR lines").len(), 14);
    client.expect("SIZE missing", &[550]);
    client.expect("SIZE dir", &[550]);
    assert_eq!(client.expect("SIZE sparse", &[213]).text(), "5368709120");
}

#[test]
fn t25_types_of_printers_and_old_clients() {
    let Some(daemon) = daemon("T25") else { return };
    daemon.put("alice", "f", b"a\nb\n");
    let mut client = daemon.login("alice");
    for (line, bytes) in [
        ("TYPE A", &b"a\r\nb\r\n"[..]),
        ("TYPE i", b"a\nb\n"),
        ("TYPE A N", b"a\r\nb\r\n"),
        ("type L 8", b"a\nb\n"),
        ("type a n", b"a\r\nb\r\n"),
        ("TYPE L8", b"a\nb\n"),
    ] {
        client.expect(line, &[200]);
        assert_eq!(client.fetch("RETR f"), bytes, "{line}");
    }
    for line in ["TYPE A X", "TYPE E", "TYPE", "MODE B", "STRU R"] {
        client.expect(line, &[501, 504]);
        assert_eq!(client.fetch("RETR f"), b"a\nb\n", "{line} changed the type");
    }
    client.expect("MODE s", &[200]);
    client.expect("STRU f", &[200]);
    let seven = client.expect("TYPE L 7", &[200, 504, 501]);
    let expected = if seven.code == 200 { &b"a\r\nb\r\n"[..] } else { b"a\nb\n" };
    assert_eq!(client.fetch("RETR f"), expected);
}
