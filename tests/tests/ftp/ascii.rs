//! TYPE A across the borders of what is moved at once (RFC 959 3.1.1.1): `transfer_chunk_bytes` is 262144 by default.

use std::fs;

use crate::daemon;

/// Text of several chunks, with every kind of line end on, before and behind each border that could matter.
fn text(ends: &[u8]) -> Vec<u8> {
    let mut text = vec![b'.'; 1_200_000];
    for border in (4096..text.len() - 4096).step_by(4096) {
        let shift = border / 4096 % (ends.len() + 2);
        text[border - shift..border - shift + ends.len()].copy_from_slice(ends);
    }
    text
}

const ENDS: [&[u8]; 7] = [b"\n", b"\r", b"\r\n", b"\r\r\n", b"\n\n\n", b"\n\r\n\r", b"\r\n\n\r\r\n"];

/// An LF gets a CR unless it has one.
fn sent(text: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        if byte == b'\n' && (at == 0 || text[at - 1] != b'\r') {
            wire.push(b'\r');
        }
        wire.push(byte);
    }
    wire
}

/// A CR in front of an LF goes.
fn stored(wire: &[u8]) -> Vec<u8> {
    let is_end = |at: usize| wire[at] == b'\r' && wire.get(at + 1) == Some(&b'\n');
    (0..wire.len()).filter(|&at| !is_end(at)).map(|at| wire[at]).collect()
}

#[test]
fn line_ends_are_right_at_every_border_both_ways() {
    let Some(daemon) = daemon("TYPE A, borders") else { return };
    let mut client = daemon.login("alice");
    client.expect("TYPE A", &[200]);
    for ends in ENDS {
        let text = text(ends);
        daemon.put("alice", "down", &text);
        assert!(client.fetch("RETR down") == sent(&text), "download, {}", ends.escape_ascii());
        client.stored("STOR up", &text);
        let up = fs::read(daemon.home("alice", "up")).expect("the upload");
        assert!(up == stored(&text), "upload, {}", ends.escape_ascii());
    }
}

#[test]
fn a_text_that_ends_in_half_a_line_end_keeps_it() {
    let Some(daemon) = daemon("TYPE A, ends") else { return };
    let mut client = daemon.login("alice");
    client.expect("TYPE A", &[200]);
    for (wire, kept) in [(&b"a\r"[..], &b"a\r"[..]), (b"\r", b"\r"), (b"\n", b"\n"), (b"\r\n", b"\n"), (b"", b"")] {
        client.stored("STOR f", wire);
        assert_eq!(fs::read(daemon.home("alice", "f")).expect("read"), kept);
    }
}

#[test]
fn size_and_offsets_are_refused_in_text_and_said_why() {
    let Some(daemon) = daemon("TYPE A, SIZE, REST") else { return };
    daemon.put("alice", "f", b"a\nb\n");
    let mut client = daemon.login("alice");
    client.expect("TYPE A", &[200]);
    assert!(client.expect("SIZE f", &[550]).text().contains("ASCII"));
    client.expect("REST 2", &[350]);
    assert_eq!(client.try_fetch("RETR f").expect_err("a refusal").code, 554);
    assert_eq!(client.fetch("RETR f"), b"a\r\nb\r\n", "a refused offset is spent");
    client.expect("REST 2", &[350]);
    client.expect("TYPE I", &[200]);
    assert_eq!(client.fetch("RETR f"), b"b\n", "what counts is the type when the transfer begins");
}
