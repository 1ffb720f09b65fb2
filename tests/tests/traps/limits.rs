//! Long lines (RFC 959 5.4) and the framing of STAT and HELP (RFC 959 4.2).

use std::io::{Read, Write};

use crate::daemon;

#[test]
fn t49_no_part_of_a_long_line_is_run() {
    let Some(daemon) = daemon("T49") else { return };
    let victim = daemon.put("alice", "victim", b"");
    let before: u64 = daemon.workers().iter().map(|w| w.memory("Private_Dirty")).sum();
    let mut sessions: Vec<_> = (0..50).map(|_| daemon.login("alice")).collect();
    for client in &mut sessions {
        let _ = client.socket().write_all(&vec![b'z'; 200_000]);
    }
    let grown = daemon.workers().iter().map(|w| w.memory("Private_Dirty")).sum::<u64>().saturating_sub(before);
    assert!(grown < 2 << 20, "50 endless lines cost {grown} bytes");
    drop(sessions);
    // Whatever the limit is, DELE stands right behind it once.
    for limit in [512, 1024, 2048, 4096, 4097, 8192, 65_536, 70_000] {
        for shift in 0..12 {
            let mut client = daemon.login("alice");
            let filler = "a".repeat(limit - 5 + shift - 6);
            client.raw(format!("USER {filler}DELE victim\r\nNOOP\r\n").as_bytes());
            client.socket().shutdown(std::net::Shutdown::Write).expect("shutdown");
            let mut said = Vec::new();
            let _ = client.socket().read_to_end(&mut said);
            assert!(victim.exists(), "DELE behind {limit} bytes ran");
            assert!(!said.windows(4).any(|w| w == b"250 "), "{}", said.escape_ascii());
        }
    }
    let mut client = daemon.login("alice");
    client.send(format!("CWD {}", "d".repeat(5000)));
    client.expect_reply(&[500, 501, 550, 553]);
    client.expect("NOOP", &[200]);
    client.send("V".repeat(600));
    client.expect_reply(&[500, 501]);
    client.in_step();
}

#[test]
fn t50_stat_is_framed_whatever_files_are_called() {
    let Some(daemon) = daemon("T50") else { return };
    for name in ["211 End", "212 x", "213 End", "226 Transfer"] {
        daemon.put("alice", name, b"");
    }
    let mut client = daemon.login("alice");
    for line in ["STAT .", "STAT -l", "STAT 213 End", "STAT /", "STAT", "HELP", "SITE HELP", "FEAT"] {
        let reply = client.ask(line);
        assert!(reply.is(2), "{line}: {reply:?}");
        client.in_step();
    }
    client.expect("STAT missing", &[450, 550]);
    client.in_step();
}

#[test]
fn a_client_that_pipelines_and_reads_nothing_harms_nobody_when_it_leaves() {
    let Some(daemon) = daemon("a flood that nobody reads") else { return };
    for line in ["HELP\r\nFEAT\r\n", "NOOP\r\n"] {
        // As many as there are workers, so that each has had one.
        for _ in 0..2 * daemon.workers().len() {
            let flood = std::net::TcpStream::connect(daemon.address()).expect("connect");
            flood.set_nonblocking(true).expect("fcntl");
            let words = line.repeat(4096);
            let mut full = 0;
            // Until neither end of the connection takes more.
            while full < 20 {
                match (&flood).write(words.as_bytes()) {
                    Ok(taken) if taken > 0 => full = 0,
                    _ => {
                        full += 1;
                        std::thread::sleep(std::time::Duration::from_millis(5));
                    }
                }
            }
        }
        for _ in 0..4 * daemon.workers().len() {
            daemon.login("alice").in_step();
        }
    }
}
