//! Names: every byte is the name's (RFC 959 5.3, RFC 2640 3.1, RFC 3659 2.2, RFC 854).

use std::{fs, time::Duration};

use e2e::tree::raw;

use crate::daemon;

#[test]
fn t14_leading_and_inner_spaces_belong_to_the_name() {
    let Some(daemon) = daemon("T14") else { return };
    daemon.put("alice", " lead", b"1");
    daemon.put("alice", "lead", b"22");
    daemon.put("alice", "a b  c", b"333");
    daemon.mkdir("alice", " d");
    daemon.put("alice", " d/x", b"");
    let mut client = daemon.login("alice");
    for (name, size) in [(" lead", "1"), ("lead", "2"), ("a b  c", "3")] {
        assert_eq!(client.expect(format!("SIZE {name}"), &[213]).text(), size);
        assert_eq!(client.fetch(format!("RETR {name}")).len().to_string(), size);
    }
    assert!(client.list("MLSD").iter().any(|l| l.ends_with(";  lead")), "two spaces in front of the name");
    client.expect("CWD  d", &[250]);
    assert_eq!(client.pwd(), b"/ d");
    client.expect("CWD /", &[250]);
    assert!(client.list("LIST  d").iter().any(|l| l.ends_with('x')));
    client.expect("RNFR  lead", &[350]);
    client.expect("RNTO  other  name ", &[250]);
    assert!(daemon.home("alice", " other  name ").exists() && daemon.home("alice", "lead").exists());
    client.expect("MKD  new", &[257]);
    assert!(daemon.home("alice", " new").is_dir());
    client.expect("DELE  other  name ", &[250]);
}

#[test]
fn t15_a_carriage_return_in_a_name_runs_no_command() {
    let Some(daemon) = daemon("T15") else { return };
    let victim = daemon.put("alice", "victim", b"");
    let mut client = daemon.login("alice");
    let data = client.passive();
    client.raw(b"STOR a\r\0\nDELE victim\r\n");
    let begun = client.reply();
    assert!(begun.is(1) || begun.is(5), "{begun:?}");
    drop(data);
    if begun.is(1) {
        client.expect_reply(&[226]);
    }
    // It was one line, and has been answered.
    client.in_step();
    assert!(victim.exists(), "the tail of a name was run");
    let size = client.ask(b"SIZE a\r\0\nDELE victim");
    client.in_step();
    assert_eq!(size.code == 213, begun.is(1), "SIZE finds exactly what STOR has made: {size:?}");
    let mut replies = vec![begun, size];
    for verb in [&b"MKD"[..], b"CWD", b"CDUP", b"RNFR", b"RMD", b"MLST", b"SIZE"] {
        replies.push(client.ask([verb, b" x\r\0y"].concat()));
        client.in_step();
    }
    let [_, _, made, entered, ..] = &replies[..] else { unreachable!() };
    assert_eq!(made.is(2), entered.is(2), "made as {made:?}, entered as {entered:?}");
    let raw = |line: &Vec<u8>| line.contains(&b'\r') || line.contains(&b'\n') || line.contains(&0);
    assert!(!replies.iter().flat_map(|reply| &reply.lines).any(raw), "{replies:?}");
    let there = fs::read_dir(daemon.site.account("alice").home.clone()).expect("list").count();
    let wanted = 1 + usize::from(replies[0].is(1)) + usize::from(replies[2].is(2) && !replies[6].is(2));
    assert_eq!(there, wanted, "nothing else was made: {replies:?}");
}

#[test]
fn t16_bytes_of_255_are_doubled_and_telnet_commands_vanish() {
    let Some(daemon) = daemon("T16") else { return };
    fs::write(daemon.site.account("alice").home.join(raw(b"caf\xff")), b"1234").expect("write");
    let mut client = daemon.login("alice");
    client.raw(b"SIZE caf\xff\xff\r\n");
    assert_eq!(client.expect_reply(&[213]).text(), "4");
    client.raw(b"\xff\xf4\xff\xf2NOOP\r\n");
    client.expect_reply(&[200]);
    client.raw(b"\xff\xfd\x18NOOP\r\n");
    client.expect_reply(&[200]);
    for split in 1..8 {
        let bytes = b"\xff\xfd\x18NOOP\r\n";
        client.raw(&bytes[..split]);
        assert!(client.is_silent_for(Duration::from_millis(10)));
        client.raw(&bytes[split..]);
        client.expect_reply(&[200]);
    }
    client.in_step();
}
