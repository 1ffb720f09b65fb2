//! Cameras, printers, old clients (RFC 959 4.1.3 and 5.4, RFC 2389 3.2, RFC 2640 3.2).

use crate::{daemon, daemon_with};

#[test]
fn t31_allo_and_verbs_of_devices() {
    let Some(daemon) = daemon("T31") else { return };
    let mut client = daemon.login("alice");
    client.expect("ALLO 1048576", &[200]);
    client.expect("ALLO 1048576 R 512", &[200]);
    client.refused("ALLO");
    client.refused("ALLO x");
    client.stored("STOR photo", b"jpeg");
    client.expect("NOOP with an argument", &[200]);
    assert!(client.expect("SYST", &[215]).text().starts_with("UNIX Type: L8"));
    for line in ["SITE IDLE 900", "CLNT x", "XCRC f", "LPRT", "OPTS FROB", "FROB", &"V".repeat(40)] {
        let reply = client.ask(line);
        assert!(reply.is(5) || reply.is(2), "{line}: {reply:?}");
    }
    for _ in 0..10 {
        client.expect("FROB", &[500, 502]);
    }
    client.in_step();
}

#[test]
fn t32_feat_and_opts_work_before_login_and_case_never_matters() {
    let Some(daemon) = daemon("T32") else { return };
    daemon.put("alice", "a", b"1");
    let mut client = daemon.connect();
    for line in ["FEAT", "feat"] {
        let inner = client.expect(line, &[211]).inner();
        assert!(inner.iter().all(|l| l.starts_with(' ') && !l.starts_with("  ")), "{inner:?}");
        assert!(inner.contains(&" UTF8".to_owned()), "{inner:?}");
    }
    for line in ["OPTS UTF8 ON", "opts utf8 on", "OPTS UTF8"] {
        client.expect(line, &[200, 202]);
    }
    client.expect("syst", &[215]);
    client.expect("HELP", &[211, 214]);
    let auth = client.ask("auth tls");
    assert!(auth.code == 234 || auth.is(5), "{auth:?}");
    if auth.code == 234 {
        return;
    }
    client.login("alice", "correct horse");
    client.expect("feat", &[211]);
    client.expect("rnfr a", &[350]);
    client.expect("rnto b", &[250]);
    client.expect("pasv", &[227]);
    assert_eq!(client.fetch("retr b"), b"1");
}

#[test]
fn t32_a_banner_that_looks_like_replies_is_padded() {
    let lines = ["banner = \"Welcome\\n220 not the end\\n230 nor this\\nlast\""];
    let Some(daemon) = daemon_with("T32, banner", &lines) else { return };
    let mut client = e2e::ftp::Client::connect_silently(daemon.address());
    let greeting = client.expect_reply(&[220]);
    assert!(greeting.lines.len() >= 4, "{greeting:?}");
    client.in_step();
}
