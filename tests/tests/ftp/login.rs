//! USER, PASS, QUIT, REIN, and what works before them (RFC 959 4.1.1, RFC 2389, RFC 2577 5).

use e2e::{Daemon, Site, ftp::Client, root_or_skip};

use crate::daemon;

#[test]
fn a_user_logs_in_looks_around_and_leaves() {
    let Some(daemon) = daemon("login") else { return };
    let mut client = daemon.connect();
    client.expect("USER alice", &[331]);
    client.expect("PASS correct horse", &[230]);
    assert_eq!(client.pwd(), b"/");
    assert!(client.expect("SYST", &[215]).text().starts_with("UNIX Type: L8"));
    client.expect("NOOP", &[200]);
    client.expect("QUIT", &[221]);
    assert!(client.ends().is_empty(), "nothing comes behind 221");
}

#[test]
fn a_wrong_password_and_an_unknown_user_sound_the_same() {
    let Some(daemon) = daemon("wrong login") else { return };
    let mut client = daemon.connect();
    client.expect("USER alice", &[331]);
    let wrong = client.expect("PASS incorrect horse", &[530]);
    let mut client = daemon.connect();
    client.expect("USER nobody-of-that-name", &[331]);
    let unknown = client.expect("PASS correct horse", &[530]);
    assert_eq!(wrong, unknown);
    client.expect("LIST", &[530]);
}

#[test]
fn after_too_many_failures_the_server_closes() {
    if !root_or_skip("login failures") {
        return;
    }
    let mut site = Site::new();
    site.set("max_login_failures = 2");
    let daemon = Daemon::start(site);
    let mut client = daemon.connect();
    client.expect("USER alice", &[331]);
    client.expect("PASS wrong", &[530]);
    client.expect("USER alice", &[331]);
    client.send("PASS wrong again");
    let last = client.ends();
    assert!(!last.is_empty() && last.iter().all(|r| r.code == 530 || r.code == 421), "{last:?}");
}

#[test]
fn the_security_framework_is_there_and_offers_no_mechanism() {
    let Some(daemon) = daemon("RFC 2228") else { return };
    let mut client = daemon.connect();
    for logged_in in [false, true] {
        if logged_in {
            client.login("alice", "correct horse");
        }
        // RFC 2228 3: what to answer before a successful AUTH, of which there is none.
        for (line, code) in [
            ("AUTH", 501),
            ("AUTH TLS", 504),
            ("auth tls-p", 504),
            ("AUTH GSSAPI", 504),
            ("ADAT YWJj", 503),
            ("PBSZ 0", 503),
            ("PROT P", 503),
            ("prot c", 503),
            ("CCC", 533),
            ("MIC Tk9PUA==", 503),
            ("CONF Tk9PUA==", 503),
            ("ENC Tk9PUA==", 503),
        ] {
            client.expect(line, &[code]);
        }
        let feat = client.expect("FEAT", &[211]).inner().join("\n");
        assert!(["AUTH", "PBSZ", "PROT", "CCC"].iter().all(|verb| !feat.contains(verb)), "{feat}");
        client.in_step();
    }
    assert_eq!(client.pwd(), b"/", "still logged in");
}

#[test]
fn user_leaves_type_mode_and_structure_as_they_are_and_rein_resets_them() {
    let Some(daemon) = daemon("transfer parameters") else { return };
    for account in ["alice", "bob"] {
        daemon.put(account, "f", b"1\n2\n");
    }
    let mut client = daemon.connect();
    let log_in = |client: &mut Client, name: &str, password: &str| {
        client.expect(format!("USER {name}"), &[331]);
        client.expect(format!("PASS {password}"), &[230]);
    };
    log_in(&mut client, "alice", "correct horse");
    // RFC 959 4.1.1 and 5.1: ASCII by default, and USER changes no transfer parameter.
    assert_eq!(client.fetch("RETR f"), b"1\r\n2\r\n");
    client.expect("TYPE I", &[200]);
    log_in(&mut client, "bob", "battery staple");
    assert_eq!(client.fetch("RETR f"), b"1\n2\n");
    client.expect("USER alice", &[331]);
    client.expect("PASS wrong", &[530]);
    client.expect("USER nobody", &[331]);
    log_in(&mut client, "alice", "correct horse");
    assert_eq!(client.fetch("RETR f"), b"1\n2\n");
    assert!(client.expect("STAT", &[211]).inner().contains(&" TYPE: Image, STRU: File, MODE: Stream".to_owned()));
    client.expect("REIN", &[220]);
    log_in(&mut client, "alice", "correct horse");
    assert_eq!(client.fetch("RETR f"), b"1\r\n2\r\n");
}

#[test]
fn before_login_only_the_door_answers() {
    let Some(daemon) = daemon("before login") else { return };
    let mut client = daemon.connect();
    let closed = [
        "CWD /",
        "PWD",
        "CDUP",
        "LIST",
        "NLST",
        "MLSD",
        "MLST",
        "RETR f",
        "STOR f",
        "APPE f",
        "STOU",
        "DELE f",
        "RMD d",
        "MKD d",
        "RNFR f",
        "RNTO g",
        "SIZE f",
        "MDTM f",
        "MFMT 20200101000000 f",
        "PASV",
        "EPSV",
        "PORT 127,0,0,1,9,9",
        "EPRT |1|127.0.0.1|2313|",
        "REST 1",
        "SITE CHMOD 644 f",
    ];
    for line in closed {
        let reply = client.refused(line);
        assert!(matches!(reply.code, 530 | 503), "{line}: {reply:?}");
    }
    client.expect("FEAT", &[211]);
    client.expect("SYST", &[215]);
    client.expect("HELP", &[211, 214]);
    client.expect("OPTS UTF8 ON", &[200, 202]);
    client.expect("NOOP", &[200]);
    client.login("alice", "correct horse");
}

#[test]
fn pass_without_user_is_out_of_sequence() {
    let Some(daemon) = daemon("PASS first") else { return };
    let mut client = daemon.connect();
    client.expect("PASS correct horse", &[503]);
    client.expect("USER", &[501]);
    client.login("alice", "correct horse");
}

#[test]
fn rein_begins_again_without_rights() {
    let Some(daemon) = daemon("REIN") else { return };
    daemon.mkdir("alice", "sub");
    let mut client = daemon.login("alice");
    client.expect("CWD sub", &[250]);
    client.expect("REIN", &[220]);
    client.expect("PWD", &[530]);
    client.login("bob", "battery staple");
    assert_eq!(client.pwd(), b"/");
    client.expect("CWD sub", &[550]);
}

#[test]
fn a_locked_account_is_refused() {
    if !root_or_skip("locked account") {
        return;
    }
    let mut site = Site::new();
    site.account_mut("bob").locked = true;
    let daemon = Daemon::start(site);
    let mut client = daemon.connect();
    client.expect("USER bob", &[331]);
    client.expect("PASS battery staple", &[530]);
    client.login("alice", "correct horse");
}

#[test]
fn anonymous_is_off_by_default_and_reads_only_when_on() {
    if !root_or_skip("anonymous") {
        return;
    }
    let daemon = Daemon::start(Site::new());
    let mut client = daemon.connect();
    client.expect("USER anonymous", &[331, 530]);
    client.expect("PASS guest@example.org", &[530, 503]);
    drop(daemon);

    let mut site = Site::new();
    let bob = site.account("bob").clone();
    site.set_in("anonymous", "enabled = true").set_in("anonymous", &format!("home = \"{}\"", bob.home.display()));
    site.set_in("anonymous", &format!("uid = {0}", bob.uid)).set_in("anonymous", &format!("gid = {0}", bob.uid));
    let daemon = Daemon::start(site);
    daemon.put("bob", "public", b"for all");
    for name in ["anonymous", "ftp"] {
        let mut client = daemon.connect();
        client.login(name, "guest@example.org");
        assert_eq!(client.fetch("RETR public"), b"for all");
        assert!(!client.store("STOR other", b"x").is(2));
        assert!(!daemon.home("bob", "other").exists());
        client.refused("DELE public");
    }
}

#[test]
fn a_silent_client_is_told_421_when_its_time_is_over() {
    if !root_or_skip("time-outs") {
        return;
    }
    let mut site = Site::new();
    site.set("login_timeout_secs = 1").set("idle_timeout_secs = 2");
    let daemon = Daemon::start(site);
    let mut stranger = daemon.connect();
    let mut idle = daemon.login("alice");
    stranger.expect_reply(&[421]);
    assert!(stranger.ends().is_empty());
    idle.expect_reply(&[421]);
    assert!(idle.ends().is_empty());
}

#[test]
fn rein_and_user_bring_no_more_time_to_a_client_that_does_not_log_in() {
    if !root_or_skip("time-outs, REIN") {
        return;
    }
    let mut site = Site::new();
    site.set("login_timeout_secs = 2").set("idle_timeout_secs = 60");
    let daemon = Daemon::start(site);
    let mut stranger = daemon.connect();
    let mut lines = ["REIN", "USER alice"].into_iter().cycle();
    e2e::until("the stranger is told 421", || {
        stranger.send(lines.next().expect("endless"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        (stranger.reply_or_end()?.code == 421).then_some(())
    });
    // A login that has ended makes room for another one, which may take as long as the first.
    let mut client = daemon.login("alice");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    client.expect("REIN", &[220]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    client.expect("USER bob", &[331]);
    client.expect("PASS battery staple", &[230]);
    client.in_step();
}

#[test]
fn limits_of_sessions_hold_across_workers_and_are_told() {
    if !root_or_skip("limits") {
        return;
    }
    let mut site = Site::new();
    site.set("max_sessions = 4").set("max_sessions_per_account = 2");
    let daemon = Daemon::start(site);
    let alices = daemon.login_at_two_workers("alice");
    let mut third = daemon.connect();
    third.expect("USER alice", &[331]);
    third.expect("PASS correct horse", &[421, 530]);
    let bobs = daemon.login_at_two_workers("bob");
    let mut fifth = Client::connect_silently(daemon.address());
    let told = fifth.reply();
    if told.code == 220 {
        fifth.expect("USER bob", &[331, 421]);
        fifth.expect("PASS battery staple", &[421, 530]);
    } else {
        assert_eq!(told.code, 421);
    }
    drop((alices, bobs));
    e2e::until("there is room again", || {
        let mut client = Client::connect_silently(daemon.address());
        let greeted = client.reply_or_end()?.code == 220;
        (greeted && client.ask("USER alice").code == 331 && client.ask("PASS correct horse").code == 230).then_some(())
    });
}
