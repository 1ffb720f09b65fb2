//! TYPE, MODE, STRU, FEAT, HELP, OPTS, SITE HELP, ALLO, STAT: what is said about a session (RFC 959 4.1.2, RFC 2389).

use crate::daemon;

#[test]
fn types_that_are_supported_are_accepted_and_others_change_nothing() {
    let Some(daemon) = daemon("TYPE") else { return };
    daemon.put("alice", "lines", b"one\ntwo\n");
    let mut client = daemon.login("alice");
    for line in ["TYPE I", "type i", "TYPE L 8", "TYPE A", "TYPE A N", "type a n"] {
        client.expect(line, &[200]);
    }
    for line in ["TYPE E", "TYPE X", "TYPE A X", "TYPE L 36"] {
        client.expect(line, &[504, 501]);
    }
    client.expect("TYPE", &[501, 504]);
    assert_eq!(client.fetch("RETR lines"), b"one\r\ntwo\r\n", "TYPE A still holds");
    client.expect("TYPE I", &[200]);
    assert_eq!(client.fetch("RETR lines"), b"one\ntwo\n");
}

#[test]
fn stream_mode_and_file_structure_are_the_only_ones() {
    let Some(daemon) = daemon("MODE, STRU") else { return };
    let mut client = daemon.login("alice");
    client.expect("MODE S", &[200]);
    client.expect("mode s", &[200]);
    client.expect("STRU F", &[200]);
    client.expect("MODE B", &[504, 501]);
    client.expect("MODE Z", &[504, 501]);
    client.expect("STRU R", &[504, 501]);
    client.expect("MODE", &[501, 504]);
    client.in_step();
}

#[test]
fn ascii_uploads_arrive_with_bare_line_feeds() {
    let Some(daemon) = daemon("TYPE A upload") else { return };
    let mut client = daemon.login("alice");
    client.expect("TYPE A", &[200]);
    client.stored("STOR text", b"one\r\ntwo\r\n\r\nlast\rnot an end\n");
    let got = std::fs::read(daemon.home("alice", "text")).expect("the upload");
    assert_eq!(got, b"one\ntwo\n\nlast\rnot an end\n");
}

#[test]
fn feat_lists_what_works_in_the_form_of_rfc_2389() {
    let Some(daemon) = daemon("FEAT") else { return };
    let mut client = daemon.connect();
    let reply = client.expect("FEAT", &[211]);
    let inner = reply.inner();
    assert!(inner.iter().all(|l| l.starts_with(' ') && !l.starts_with("  ")), "exactly one space: {inner:?}");
    for feature in ["EPSV", "EPRT", "MDTM", "SIZE", "UTF8", "REST STREAM", "TVFS"] {
        assert!(inner.contains(&format!(" {feature}")), "{feature} is missing: {inner:?}");
    }
    assert!(inner.iter().any(|l| l.starts_with(" MLST ") && l.contains("type*;")), "{inner:?}");
    assert!(inner.iter().any(|l| l.starts_with(" MFMT")), "{inner:?}");
    for not_yet in ["AUTH", "PBSZ", "PROT"] {
        assert!(!inner.iter().any(|l| l.contains(not_yet)), "{not_yet} is listed and does not work");
    }
}

#[test]
fn help_and_site_help_answer_in_frames() {
    let Some(daemon) = daemon("HELP") else { return };
    let mut client = daemon.login("alice");
    client.expect("HELP", &[211, 214]);
    client.expect("HELP STOR", &[211, 214]);
    client.ask("HELP FROB");
    client.expect("SITE HELP", &[211, 214, 200]);
    client.expect("SITE FROB", &[500, 501, 502, 504]);
    client.in_step();
}

#[test]
fn opts_is_obeyed_for_utf8_and_mlst_and_refused_for_others() {
    let Some(daemon) = daemon("OPTS") else { return };
    daemon.put("alice", "f", b"12345");
    let mut client = daemon.login("alice");
    client.expect("OPTS UTF8 ON", &[200, 202]);
    client.expect("opts utf8 on", &[200, 202]);
    client.expect("OPTS FROB x", &[501, 500, 502, 504]);
    let reply = client.expect("OPTS MLST size;", &[200]);
    assert!(reply.text().to_lowercase().contains("size;"), "{reply:?}");
    let lines = client.list("MLSD");
    assert!(lines.contains(&"size=5; f".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|l| l.contains("type=") || l.contains("modify=")), "{lines:?}");
}

#[test]
fn allo_is_answered_as_cameras_expect() {
    let Some(daemon) = daemon("ALLO") else { return };
    let mut client = daemon.login("alice");
    client.expect("ALLO 1048576", &[200, 202]);
    client.expect("ALLO 1048576 R 512", &[200, 202]);
    client.refused("ALLO x");
    client.stored("STOR photo", b"jpeg");
}

#[test]
fn stat_tells_of_the_session_and_of_paths() {
    let Some(daemon) = daemon("STAT") else { return };
    daemon.put("alice", "f", b"12345");
    let mut client = daemon.login("alice");
    client.expect("STAT", &[211]);
    let reply = client.expect("STAT f", &[213]);
    assert!(format!("{reply:?}").contains('f'));
    let reply = client.expect("STAT /", &[212, 213]);
    assert!(reply.inner().iter().any(|l| l.ends_with(" f")), "{reply:?}");
    client.expect("STAT missing", &[450, 550]);
    client.in_step();
}
