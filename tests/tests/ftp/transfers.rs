//! RETR, STOR, APPE, STOU, REST, ABOR (RFC 959 4.1.3, RFC 3659 5).

use std::{
    fs,
    io::{Read, Write},
    net::Shutdown,
    time::{Duration, Instant},
};

use e2e::{ftp, tree, until};
use rustix::net::{SendFlags, send};

use crate::daemon;

#[test]
fn uploads_and_downloads_of_every_size_are_whole() {
    let Some(daemon) = daemon("sizes") else { return };
    let mut client = daemon.login("alice");
    for size in [0, 1, 4095, 4096, 65_536, 65_537, 1 << 20, (1 << 20) + 1, 5_000_003] {
        let content = tree::content(size, size as u64);
        client.stored("STOR f", &content);
        assert_eq!(fs::metadata(daemon.home("alice", "f")).expect("stat").len(), size as u64);
        assert!(client.fetch("RETR f") == content, "{size} bytes came back changed");
    }
}

#[test]
fn a_download_goes_on_where_rest_says() {
    let Some(daemon) = daemon("REST, RETR") else { return };
    let content = tree::content(100_000, 7);
    daemon.put("alice", "f", &content);
    let mut client = daemon.login("alice");
    client.expect("REST 40000", &[350]);
    assert!(client.fetch("RETR f") == content[40_000..]);
    assert!(client.fetch("RETR f") == content, "REST holds for one transfer");
    client.expect("REST 100000", &[350]);
    assert_eq!(client.fetch("RETR f"), b"");
    client.expect("REST 100001", &[350, 501, 554]);
    if let Ok(bytes) = client.try_fetch("RETR f") {
        assert!(bytes.is_empty() || bytes == content, "never bytes from a wrong place");
    }
    for line in ["REST -1", "REST x", "REST", "REST 18446744073709551616", "REST 1e3"] {
        client.expect(line, &[501, 554]);
    }
    assert!(client.fetch("RETR f") == content, "a refused REST arms nothing");
}

#[test]
fn an_upload_goes_on_where_rest_says() {
    let Some(daemon) = daemon("REST, STOR") else { return };
    let content = tree::content(100_000, 8);
    let file = daemon.put("alice", "part", &content[..40_000]);
    let mut client = daemon.login("alice");
    client.expect("REST 40000", &[350]);
    client.stored("STOR part", &content[40_000..]);
    assert!(fs::read(&file).expect("read") == content);
    daemon.put("alice", "part", &content[..40_000]);
    client.stored("APPE part", &content[40_000..]);
    assert!(fs::read(&file).expect("read") == content, "APPE");
    daemon.put("alice", "part", &content[..40_000]);
    client.expect("REST 50000", &[350]);
    assert!(!client.store("STOR part", &content[50_000..]).is(2), "a gap is refused");
    assert!(fs::read(&file).expect("read") == content[..40_000]);
    client.expect("REST 10", &[350]);
    assert!(!client.store("STOR missing", b"x").is(2));
}

#[test]
fn appe_makes_a_missing_file() {
    let Some(daemon) = daemon("APPE") else { return };
    let mut client = daemon.login("alice");
    client.stored("APPE log", b"one ");
    client.stored("APPE log", b"two");
    assert_eq!(fs::read(daemon.home("alice", "log")).expect("read"), b"one two");
}

#[test]
fn stor_replaces_what_is_there() {
    let Some(daemon) = daemon("STOR") else { return };
    daemon.put("alice", "f", &[b'x'; 10_000]);
    let mut client = daemon.login("alice");
    client.stored("STOR f", b"short");
    assert_eq!(fs::read(daemon.home("alice", "f")).expect("read"), b"short");
}

#[test]
fn stou_never_touches_what_is_there_and_tells_the_name() {
    let Some(daemon) = daemon("STOU") else { return };
    daemon.put("alice", "f", b"old");
    let mut client = daemon.login("alice");
    daemon.mkdir("alice", "d");
    let mut names = Vec::new();
    for (line, content, before) in [
        ("STOU", b"first", "stou."),
        ("STOU", b"secnd", "stou."),
        ("STOU f", b"third", "f."),
        ("STOU d/f", b"forth", "d/f"),
        ("STOU /d/f", b"fifth", "d/f."),
        ("STOU d", b"sixth", "d/stou."),
    ] {
        let mut connection = client.passive();
        let begun = client.expect(line, &[150, 125]);
        // RFC 1123 4.1.2.9: `FILE: pppp`, where pppp is the path.
        let text = begun.text();
        let name = text.split_once("FILE: ").expect("FILE: in the preliminary reply").1.trim().to_owned();
        connection.write_all(content).expect("send");
        drop(connection);
        client.expect_reply(&[226, 250]);
        assert!(name.starts_with(before), "{line}: {name}");
        assert_eq!(client.fetch(format!("RETR {name}")), content);
        names.push(name);
    }
    assert_ne!(names[0], names[1]);
    assert_eq!(fs::read(daemon.home("alice", "f")).expect("read"), b"old");
}

#[test]
fn transfers_that_cannot_be_opened_are_refused_and_the_next_one_works() {
    let Some(daemon) = daemon("refused transfers") else { return };
    daemon.mkdir("alice", "d");
    let mut client = daemon.login("alice");
    let long = "n".repeat(300);
    for line in
        ["RETR d", "RETR missing", "STOR d", "STOR no/parent", &format!("STOR {long}"), "RETR", "STOR", "STOR /"]
    {
        let connection = client.passive();
        let reply = client.ask(line);
        assert!(reply.is(4) || reply.is(5), "{line}: {reply:?}");
        drop(connection);
    }
    client.stored("STOR good", b"good");
    assert_eq!(client.fetch("RETR good"), b"good");
}

#[test]
fn abor_ends_a_download_with_426_and_226() {
    let Some(daemon) = daemon("ABOR download") else { return };
    fs::File::create(daemon.home("alice", "big")).and_then(|f| f.set_len(300 << 20)).expect("make a sparse file");
    let mut client = daemon.login("alice");
    client.expect("ABOR", &[225, 226]);
    for telnet in [false, true] {
        let mut connection = client.passive();
        client.expect("RETR big", &[150, 125]);
        connection.read_exact(&mut vec![0; 1 << 20]).expect("the first mebibyte");
        if telnet {
            client.raw(b"\xff\xf4\xff");
            send(client.socket(), b"\xf2", SendFlags::OOB).expect("send urgent data");
        }
        client.send("ABOR");
        client.expect_reply(&[426, 226]);
        client.expect_reply(&[226, 225]);
        // Closed at once: what is still in the buffers comes, then the end.
        let mut rest = Vec::new();
        let _ = connection.read_to_end(&mut rest);
        assert!(rest.len() < 200 << 20);
        client.in_step();
        assert_eq!(client.list("NLST"), ["big"]);
    }
}

#[test]
fn abor_ends_an_upload() {
    let Some(daemon) = daemon("ABOR upload") else { return };
    let mut client = daemon.login("alice");
    let mut connection = client.passive();
    client.expect("STOR f", &[150, 125]);
    connection.write_all(&[b'x'; 100_000]).expect("send");
    until("the upload has begun", || fs::metadata(daemon.home("alice", "f")).ok().filter(|m| m.len() > 0).map(|_| ()));
    client.send("ABOR");
    client.expect_reply(&[426]);
    client.expect_reply(&[226, 225]);
    client.in_step();
    assert_eq!(client.list("NLST").len(), 1);
}

#[test]
fn commands_that_came_with_a_transfer_are_answered_behind_it() {
    let Some(daemon) = daemon("pipelining a transfer") else { return };
    let content = tree::content(8 << 20, 3);
    daemon.put("alice", "f", &content);
    let mut client = daemon.login("alice");
    let connection = client.passive();
    client.raw(b"RETR f\r\nNOOP\r\nPWD\r\nQUIT\r\n");
    client.expect_reply(&[150, 125]);
    assert!(ftp::drain(connection) == content);
    for code in [226, 200, 257, 221] {
        client.expect_reply(&[code]);
    }
    assert!(client.ends().is_empty());
}

#[test]
fn an_upload_whose_client_vanishes_is_not_called_complete() {
    let Some(daemon) = daemon("reset upload") else { return };
    let mut client = daemon.login("alice");
    let mut connection = client.passive();
    client.expect("STOR f", &[150, 125]);
    connection.write_all(&[b'x'; 100_000]).expect("send");
    until("the bytes have arrived", || {
        fs::metadata(daemon.home("alice", "f")).ok().filter(|m| m.len() == 100_000).map(|_| ())
    });
    // Lingering for no time turns the close into a reset.
    rustix::net::sockopt::set_socket_linger(&connection, Some(Duration::ZERO)).expect("setsockopt");
    drop(connection);
    client.expect_reply(&[426, 451]);
    client.in_step();
}

#[test]
fn a_download_whose_client_closes_early_ends_in_426() {
    let Some(daemon) = daemon("early close") else { return };
    fs::File::create(daemon.home("alice", "big")).and_then(|f| f.set_len(100 << 20)).expect("make a sparse file");
    let mut client = daemon.login("alice");
    let mut connection = client.passive();
    client.expect("RETR big", &[150, 125]);
    connection.read_exact(&mut [0; 1000]).expect("the first bytes");
    let _ = connection.shutdown(Shutdown::Both);
    drop(connection);
    client.expect_reply(&[426, 451]);
    client.in_step();
}

#[test]
fn a_slow_reader_does_not_hold_up_others() {
    let Some(daemon) = daemon("fair shares") else { return };
    fs::File::create(daemon.home("alice", "big")).and_then(|f| f.set_len(100 << 20)).expect("make a sparse file");
    let (mut slow, mut quick) = (daemon.login("alice"), daemon.login("alice"));
    let held = slow.passive();
    slow.expect("RETR big", &[150, 125]);
    let began = Instant::now();
    assert_eq!(quick.fetch("RETR big").len(), 100 << 20);
    assert!(began.elapsed() < Duration::from_secs(15));
    assert_eq!(ftp::drain(held).len(), 100 << 20);
    slow.expect_reply(&[226]);
}

#[test]
fn a_transfer_that_stalls_is_ended() {
    if !e2e::root_or_skip("stall_timeout_secs") {
        return;
    }
    let mut site = e2e::Site::new();
    site.set("stall_timeout_secs = 1");
    let daemon = e2e::Daemon::start(site);
    let mut client = daemon.login("alice");
    let connection = client.passive();
    client.expect("STOR f", &[150, 125]);
    let last = client.reply();
    assert!(matches!(last.code, 421 | 426), "{last:?}");
    drop(connection);
}

#[test]
fn a_client_that_stops_reading_is_ended_and_keeps_nobody_waiting() {
    if !e2e::root_or_skip("stall_timeout_secs, RETR") {
        return;
    }
    let mut site = e2e::Site::new();
    site.set("stall_timeout_secs = 1");
    let daemon = e2e::Daemon::start(site);
    fs::File::create(daemon.home("alice", "big")).and_then(|f| f.set_len(256 << 20)).expect("make a sparse file");
    let content = e2e::tree::content(300_000, 3);
    daemon.put("alice", "f", &content);
    // By sendfile, and by the pooled copy.
    for kind in ["TYPE I", "TYPE A"] {
        let (mut client, mut other) = (daemon.login("alice"), daemon.login("alice"));
        client.expect(kind, &[200]);
        let mut connection = client.passive();
        client.expect("RETR big", &[150, 125]);
        assert_eq!(other.fetch("RETR f"), content);
        let began = Instant::now();
        client.expect_reply(&[426]);
        assert!(began.elapsed() < Duration::from_secs(10), "{kind}: {:?}", began.elapsed());
        // What was under way may still arrive; then the connection is at its end.
        let (mut got, mut part) = (0, vec![0; 1 << 20]);
        let end = loop {
            match connection.read(&mut part) {
                Ok(0) => break Ok(()),
                Ok(count) => got += count,
                Err(e) => break Err(e.kind()),
            }
        };
        assert!(matches!(end, Ok(()) | Err(std::io::ErrorKind::ConnectionReset)), "{kind}: {end:?}");
        assert!(got < 256 << 20, "{kind}: all of it came");
        client.in_step();
        client.expect("TYPE I", &[200]);
        assert_eq!(client.fetch("RETR f"), content);
    }
}
