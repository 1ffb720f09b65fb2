//! The control connection as bytes: any sequence gets a reply or a close, and replies stay in step.

use std::time::Duration;

use e2e::{Daemon, Site, root_or_skip, tree};

use crate::daemon;

#[test]
fn five_hundred_commands_in_one_segment_are_answered_in_order() {
    let Some(daemon) = daemon("pipelining") else { return };
    daemon.put("alice", "f", b"12345");
    let mut client = daemon.login("alice");
    let turn: [(&str, u16); 5] = [("NOOP", 200), ("PWD", 257), ("SIZE f", 213), ("TYPE I", 200), ("CWD missing", 550)];
    let lines: String = turn.iter().cycle().take(500).map(|(line, _)| format!("{line}\r\n")).collect();
    client.raw(lines.as_bytes());
    for (line, code) in turn.iter().cycle().take(500) {
        let reply = client.reply();
        assert_eq!(reply.code, *code, "{line}: {reply:?}");
    }
    client.in_step();
}

#[test]
fn verbs_are_known_in_any_case_and_split_over_segments() {
    let Some(daemon) = daemon("case") else { return };
    let mut client = daemon.login("alice");
    client.expect("nOoP", &[200]);
    for byte in b"NOOP\r\n" {
        client.raw(&[*byte]);
    }
    client.expect_reply(&[200]);
    client.in_step();
}

#[test]
fn unknown_verbs_are_answered_and_the_session_goes_on() {
    let Some(daemon) = daemon("unknown verbs") else { return };
    let mut client = daemon.login("alice");
    for line in ["FROB", "XFOO f", "CLIENT x", "LPRT 1", "MLFL", "SMNT /", "ACCT x", "A", "GET / HTTP/1.1", ""] {
        client.expect(line, &[500, 501, 502, 202, 530]);
    }
    client.expect("V".repeat(40), &[500]);
    client.in_step();
}

#[test]
fn telnet_commands_vanish_from_lines() {
    let Some(daemon) = daemon("Telnet") else { return };
    daemon.put("alice", "plain", b"123");
    std::fs::write(daemon.site.account("alice").home.join(tree::raw(b"caf\xff")), b"1234567").expect("write");
    let mut client = daemon.login("alice");
    client.raw(b"\xff\xf4\xff\xf2NOOP\r\n");
    client.expect_reply(&[200]);
    for option in [b"\xff\xfd\x18", b"\xff\xfb\x18", b"\xff\xfc\x18", b"\xff\xfe\x18"] {
        client.raw(&[option, &b"NOOP\r\n"[..]].concat());
        client.expect_reply(&[200]);
    }
    client.raw(b"SIZE caf\xff");
    client.raw(b"\xff\r\n");
    assert_eq!(client.expect_reply(&[213]).text(), "7", "a doubled FF is one");
    client.in_step();
}

#[test]
fn long_lines_are_answered_once_and_no_part_of_them_runs() {
    let Some(daemon) = daemon("long lines") else { return };
    let victim = daemon.put("alice", "victim", b"");
    let mut client = daemon.login("alice");
    let filler = "x".repeat(70_000);
    for line in [
        format!("CWD {filler}"),
        format!("{filler} y"),
        format!("CWD {filler}\nDELE victim"),
        format!("CWD {filler}\0DELE victim"),
    ] {
        client.send(&line);
        match client.reply_or_end() {
            Some(reply) => assert!(matches!(reply.code, 500 | 501 | 550 | 553 | 421), "{reply:?}"),
            None => client = daemon.login("alice"),
        }
        assert!(victim.exists());
    }
    let mut client = daemon.login("alice");
    client.send(format!("CWD {}", "y".repeat(5000)));
    client.expect_reply(&[500, 501, 550, 553]);
    client.in_step();
}

#[test]
fn endless_lines_cost_no_memory() {
    if !root_or_skip("endless lines") {
        return;
    }
    let mut site = Site::new();
    site.set("workers = 1");
    let daemon = Daemon::start(site);
    let worker = daemon.workers()[0];
    let mut other = daemon.login("bob");
    let endless = |mebibytes: usize| {
        let client = daemon.connect();
        let block = vec![b'A'; 1 << 20];
        for _ in 0..mebibytes {
            // Being closed is an answer too.
            if std::io::Write::write_all(&mut client.socket(), &block).is_err() {
                break;
            }
        }
        client
    };
    // The first one touches what is touched once.
    let _first = endless(1);
    let before = worker.memory("Private_Dirty");
    let _more: Vec<_> = (0..20).map(|_| endless(4)).collect();
    let grown = worker.memory("Private_Dirty").saturating_sub(before);
    assert!(grown < 1 << 20, "grew by {grown} bytes");
    other.in_step();
}

#[test]
fn control_bytes_in_names_do_not_break_replies() {
    let Some(daemon) = daemon("control bytes") else { return };
    let victim = daemon.put("alice", "victim", b"");
    let mut client = daemon.login("alice");
    client.raw(b"MKD x\r\0y\r\n");
    client.reply();
    client.in_step();
    client.raw(b"CWD a\r\0\nDELE victim\r\n");
    client.reply();
    // A lone LF may or may not end a line; the file stays either way.
    while !client.is_silent_for(Duration::from_millis(200)) {
        client.reply();
    }
    assert!(victim.exists());
    client.raw(b"CWD a\0b\r\n");
    let reply = client.reply();
    assert!(reply.is(5), "{reply:?}");
    client.expect(b"MKD bell\x07and\x1b[31m", &[257, 501, 550, 553]);
    client.in_step();
}

#[test]
fn noise_on_the_control_connection_is_survived() {
    let Some(daemon) = daemon("noise") else { return };
    let mut other = daemon.login("bob");
    let family = daemon.workers();
    for seed in 0..40 {
        let mut noise = tree::content(20_000, seed);
        noise.extend_from_slice(b"\r\nQUIT\r\n");
        let client = daemon.connect();
        let _ = std::io::Write::write_all(&mut client.socket(), &noise);
        let _ = client.socket().shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut client.socket(), &mut rest);
        for line in rest.split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
            let printable = line.iter().all(|&b| b == b'\r' || (0x20..0x7f).contains(&b));
            assert!(printable, "a reply repeats raw bytes: {}", line.escape_ascii());
        }
    }
    other.in_step();
    assert_eq!(daemon.workers(), family, "no worker died of it");
}
