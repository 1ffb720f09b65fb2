//! ABOR, QUIT and pipelining: one reply a command, in order (RFC 959 4.1.1, 4.1.3, 5.4).

use std::{fs, io::Read, io::Write, thread, time::Duration};

use e2e::{
    ftp::{self, Client},
    tree,
};
use nix::sys::signal::Signal;
use rustix::net::{SendFlags, send};

use crate::{daemon, sparse};

/// Everything behind an ABOR is in step.
fn goes_on(client: &mut Client) {
    client.expect("NOOP", &[200]);
    client.expect("PWD", &[257]);
    client.list("LIST");
    client.in_step();
}

/// 426 and 226, or 226 and 226 if the transfer had just ended.
fn aborted(client: &mut Client) {
    client.expect_reply(&[426, 226]);
    client.expect_reply(&[225, 226]);
}

#[test]
fn t26_abor_is_answered_once_whatever_goes_on() {
    let Some(daemon) = daemon("T26") else { return };
    sparse(&daemon, "big", 300 << 20);
    let mut client = daemon.login("alice");
    client.expect("ABOR", &[225, 226]);
    goes_on(&mut client);
    for way in ["plain", "urgent", "twice"] {
        let mut connection = client.passive();
        client.expect("RETR big", &[150, 125]);
        connection.read_exact(&mut vec![0; 1 << 20]).expect("a mebibyte");
        match way {
            "urgent" => {
                client.raw(b"\xff\xf4\xff");
                send(client.socket(), b"\xf2", SendFlags::OOB).expect("urgent data");
                client.raw(b"ABOR\r\n");
            }
            "twice" => client.raw(b"ABOR\r\nABOR\r\n"),
            _ => client.raw(b"ABOR\r\n"),
        }
        aborted(&mut client);
        if way == "twice" {
            client.expect_reply(&[225, 226]);
        }
        let _ = connection.read_to_end(&mut Vec::new());
        goes_on(&mut client);
    }
    let mut connection = client.passive();
    client.expect("STOR up", &[150, 125]);
    connection.write_all(&[b'x'; 100_000]).expect("send");
    client.raw(b"ABOR\r\n");
    aborted(&mut client);
    goes_on(&mut client);
}

#[test]
fn t27_commands_behind_a_transfer_wait_for_its_end() {
    let Some(daemon) = daemon("T27") else { return };
    let content = tree::content(50 << 20, 27);
    daemon.put("alice", "f", &content);
    let mut client = daemon.login("alice");
    let connection = client.passive();
    client.raw(b"RETR f\r\nNOOP\r\nPWD\r\n");
    client.expect_reply(&[150, 125]);
    assert!(ftp::drain(connection) == content);
    for code in [226, 200, 257] {
        client.expect_reply(&[code]);
    }
    let connection = client.passive();
    client.raw(b"RETR f\r\nQUIT\r\n");
    client.expect_reply(&[150, 125]);
    assert!(ftp::drain(connection) == content, "QUIT cut the transfer");
    client.expect_reply(&[226]);
    client.expect_reply(&[221]);
    assert!(client.ends().is_empty());
}

#[test]
fn t27_noop_and_stat_during_transfers_keep_replies_in_order() {
    let Some(daemon) = daemon("T27, NOOP") else { return };
    let mut client = daemon.login("alice");
    let mut connection = client.passive();
    client.expect("STOR up", &[150, 125]);
    for _ in 0..5 {
        connection.write_all(&[b'x'; 10_000]).expect("send");
        client.send("NOOP");
        thread::sleep(Duration::from_millis(20));
    }
    drop(connection);
    // NOOPs may be answered at once or behind the transfer; each once.
    let codes: Vec<u16> = (0..6).map(|_| client.reply().code).collect();
    assert_eq!(codes.iter().filter(|c| **c == 200).count(), 5, "{codes:?}");
    assert_eq!(codes.iter().filter(|c| **c == 226).count(), 1, "{codes:?}");
    assert_eq!(fs::metadata(daemon.home("alice", "up")).expect("stat").len(), 50_000);
    sparse(&daemon, "big", 100 << 20);
    let connection = client.passive();
    client.expect("RETR big", &[150, 125]);
    client.send("STAT");
    let reader = thread::spawn(move || ftp::drain(connection).len());
    let codes = [client.reply().code, client.reply().code];
    assert!(codes.contains(&226) && codes.iter().any(|c| (211..=213).contains(c)), "{codes:?}");
    assert_eq!(reader.join().expect("the reader"), 100 << 20);
    client.in_step();
}

#[test]
fn t26_urgent_telnet_bytes_are_read_however_clients_send_them() {
    let Some(daemon) = daemon("T26") else { return };
    crate::sparse(&daemon, "large", 300 << 20);
    let mut client = daemon.login("alice");
    // lftp marks the second IAC as urgent, BSD ftp the IAC behind IP; both send the rest apart.
    let ways: [(&[u8], &[u8], &[u8]); 2] =
        [(b"\xff\xf4", b"\xff", b"\xf2ABOR\r\n"), (b"\xff", b"\xf4\xff", b"\xf2ABOR\r\n")];
    for (before, urgent, behind) in ways.iter().cycle().take(20) {
        client.expect("TYPE I", &[200]);
        let mut data = client.passive();
        client.send("RETR large");
        client.expect_reply(&[150]);
        data.read_exact(&mut vec![0; 1 << 20]).expect("a mebibyte");
        client.raw(before);
        send(client.socket(), urgent, SendFlags::OOB).expect("urgent data");
        client.raw(behind);
        client.expect_reply(&[426]);
        client.expect_reply(&[226]);
        client.in_step();
    }
}

#[test]
fn t26_nothing_behind_urgent_data_is_overlooked_however_it_arrives() {
    let Some(daemon) = daemon("T26, urgent") else { return };
    let mut client = daemon.login("alice");
    let worker = daemon.worker_of(&client);
    // What the worker has read before, and what it finds in front of the urgent byte, at it, and behind it.
    let ways: [(&[u8], &[u8], &[u8]); 4] = [
        (b"\xff", b"\xf4\xff", b"\xf2NOOP\r\n"),
        (b"\xff\xf4", b"\xff", b"\xf2NOOP\r\n"),
        (b"", b"\xff\xf4\xff", b"\xf2NOOP\r\n"),
        (b"\xff\xf4\xff", b"\xf2", b"NOOP\r\n"),
    ];
    for (read, urgent, behind) in ways {
        client.raw(read);
        thread::sleep(Duration::from_millis(30));
        worker.halt();
        send(client.socket(), urgent, SendFlags::OOB).expect("urgent data");
        client.raw(behind);
        worker.signal(Signal::SIGCONT);
        client.expect_reply(&[200]);
        // A whole line in front of it.
        worker.halt();
        client.raw(b"NOOP\r\n");
        send(client.socket(), b"\xff", SendFlags::OOB).expect("urgent data");
        client.raw(b"\xf2NOOP\r\n");
        worker.signal(Signal::SIGCONT);
        client.expect_reply(&[200]);
        client.expect_reply(&[200]);
    }
}
