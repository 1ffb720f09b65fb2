//! Resuming: offsets are exact or refused (RFC 3659 5).

use std::fs;

use e2e::tree;

use crate::daemon;

#[test]
fn t22_an_upload_goes_on_at_its_offset_and_gaps_are_refused() {
    let Some(daemon) = daemon("T22") else { return };
    let content = tree::content(100_000, 22);
    let file = daemon.put("alice", "part.bin", &content[..40_000]);
    let mut client = daemon.login("alice");
    client.expect("REST 40000", &[350]);
    client.stored("STOR part.bin", &content[40_000..]);
    assert!(fs::read(&file).expect("read") == content);
    daemon.put("alice", "part.bin", &content[..40_000]);
    client.stored("APPE part.bin", &content[40_000..]);
    assert!(fs::read(&file).expect("read") == content);
    client.expect("REST 40000", &[350]);
    let missing = client.store("STOR missing.bin", &content[40_000..]);
    let size = fs::metadata(daemon.home("alice", "missing.bin")).map_or(0, |m| m.len());
    assert!(!missing.is(2) || size == 100_000, "{missing:?} and {size} bytes");
    daemon.put("alice", "part.bin", &content[..40_000]);
    client.expect("REST 50000", &[350]);
    let gap = client.store("STOR part.bin", &content[50_000..]);
    let size = fs::metadata(&file).expect("stat").len();
    assert!(!gap.is(2) || size == 100_000, "{gap:?} and {size} bytes");
}

#[test]
fn t23_odd_offsets_arm_nothing_and_never_send_from_the_start() {
    let Some(daemon) = daemon("T23") else { return };
    let content = tree::content(100, 23);
    daemon.put("alice", "f", &content);
    let mut client = daemon.login("alice");
    for odd in ["18446744073709551616", "-1", "+5", "5x", "", "1e3", "99999999999999999999999999"] {
        client.expect(format!("REST {odd}").trim_end(), &[501, 554]);
        assert!(client.fetch("RETR f") == content, "{odd} armed something");
    }
    for huge in ["18446744073709551615", "9223372036854775808", "9223372036854775807", "101"] {
        let armed = client.ask(format!("REST {huge}"));
        if armed.code == 350 {
            match client.try_fetch("RETR f") {
                Ok(bytes) => assert!(bytes.is_empty(), "{huge}"),
                Err(refused) => assert!(matches!(refused.code, 550 | 551 | 554), "{huge}: {refused:?}"),
            }
        } else {
            assert!(matches!(armed.code, 501 | 554), "{huge}: {armed:?}");
            assert!(client.fetch("RETR f") == content);
        }
    }
    client.expect("REST 100", &[350]);
    assert_eq!(client.fetch("RETR f"), b"");
    client.expect("REST 00010", &[350]);
    assert!(client.fetch("RETR f") == content[10..]);
}
