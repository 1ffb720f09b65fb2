//! HOST and virtual hosts (RFC 7151): which name is known, how it greets, and who may log in there.

use std::time::{Duration, Instant};

use e2e::{Daemon, Site, ftp::Client, root_or_skip};
use nix::sys::signal::Signal;

/// alice is at home at `a.test`, bob everywhere.
fn site() -> Site {
    let mut site = Site::new();
    site.set("banner = \"Everybody\"");
    site.section("host", "name = \"a.test\"\nbanner = \"First line\\nAt A\"");
    site.section("host", "name = \"B.test.\"");
    site.account_mut("alice").hosts = vec!["a.test"];
    site
}

fn daemon(scenario: &str) -> Option<Daemon> {
    root_or_skip(scenario).then(|| Daemon::start(site()))
}

/// A client that has named a host.
fn at(daemon: &Daemon, host: &str) -> Client {
    let mut client = daemon.connect();
    client.expect(format!("HOST {host}"), &[220]);
    client
}

/// The reply to a password.
fn tried(client: &mut Client, name: &str, password: &str) -> String {
    client.expect(format!("USER {name}"), &[331]);
    format!("{:?}", client.ask(format!("PASS {password}")))
}

#[test]
fn a_host_greets_with_its_own_banner_or_the_common_one() {
    let Some(daemon) = daemon("banners of hosts") else { return };
    let mut client = Client::connect_silently(daemon.address());
    assert_eq!(client.expect_reply(&[220]).text(), "Everybody");
    let reply = client.expect("HOST A.TEST", &[220]);
    assert_eq!(format!("{reply:?}"), "220-First line / 220 At A");
    assert_eq!(client.expect("HOST b.test", &[220]).text(), "Everybody");
    client.expect("HOST c.test", &[504]);
    client.expect("HOST 127.0.0.1", &[504]);
    client.expect("HOST not a name", &[501]);
    client.expect("HOST", &[501]);
    client.expect("USER bob", &[331]);
    client.expect("HOST a.test", &[503]);
    client.expect("PASS battery staple", &[230]);
    client.expect("HOST a.test", &[503]);
    assert!(client.expect("FEAT", &[211]).inner().contains(&" HOST".to_owned()));
}

#[test]
fn an_account_of_a_host_logs_in_there_alone_and_is_refused_elsewhere_as_with_a_wrong_password() {
    let Some(daemon) = daemon("accounts of hosts") else { return };
    at(&daemon, "a.test").login("alice", "correct horse");
    at(&daemon, "a.test").login("bob", "battery staple");
    at(&daemon, "b.test").login("bob", "battery staple");
    drop(daemon.login("bob"));
    let wrong = tried(&mut at(&daemon, "a.test"), "alice", "wrong");
    assert!(wrong.starts_with("530 "), "{wrong}");
    assert_eq!(tried(&mut at(&daemon, "b.test"), "alice", "correct horse"), wrong);
    daemon.logged(&["login-failed", "why=other-host", "user=\"alice\""]);
    assert_eq!(tried(&mut daemon.connect(), "alice", "correct horse"), wrong);
}

#[test]
fn the_last_host_counts_until_rein_and_a_wrong_one_is_none() {
    let Some(daemon) = daemon("hosts one after the other") else { return };
    let mut client = at(&daemon, "b.test");
    client.expect("HOST a.test", &[220]);
    client.login("alice", "correct horse");
    // Another user at the same host.
    assert!(tried(&mut client, "bob", "battery staple").starts_with("230 "));
    assert!(tried(&mut client, "alice", "correct horse").starts_with("230 "));
    client.expect("REIN", &[220]);
    assert!(tried(&mut client, "alice", "correct horse").starts_with("530 "));
    client.expect("HOST a.test", &[220]);
    client.login("alice", "correct horse");
    let mut client = at(&daemon, "a.test");
    client.expect("HOST c.test", &[504]);
    assert!(tried(&mut client, "alice", "correct horse").starts_with("530 "));
}

#[test]
fn a_right_password_at_the_wrong_host_costs_what_a_wrong_one_costs_and_is_not_remembered() {
    let Some(daemon) = daemon("cost of the wrong host") else { return };
    let timed = |host: &str, password: &str| {
        let mut client = at(&daemon, host);
        client.expect("USER alice", &[331]);
        let began = Instant::now();
        let code = client.ask(format!("PASS {password}")).code;
        (code, began.elapsed())
    };
    // Known at its own host, at once.
    assert_eq!(timed("a.test", "correct horse").0, 230);
    let cached = (0..3).map(|_| timed("a.test", "correct horse")).inspect(|t| assert_eq!(t.0, 230)).map(|t| t.1).min();
    // Two refusals are not held back (delay.rs).
    let (code, elsewhere) = timed("b.test", "correct horse");
    assert_eq!(code, 530);
    assert!(elsewhere > cached.expect("three") + Duration::from_millis(2), "{elsewhere:?} and {cached:?}");
    assert_eq!(timed("a.test", "correct horse").0, 230);
}

#[test]
fn a_reload_changes_hosts_and_their_accounts() {
    let Some(mut daemon) = daemon("reload of hosts") else { return };
    daemon.site.account_mut("alice").hosts = vec!["b.test", "c.test"];
    daemon.site.section("host", "name = \"c.test\"\nbanner = \"At C\"");
    daemon.site.write();
    daemon.signal(Signal::SIGHUP);
    daemon.logged(&["reloaded"]);
    let mut client = daemon.connect();
    assert_eq!(client.expect("HOST c.test", &[220]).text(), "At C");
    client.login("alice", "correct horse");
    assert!(tried(&mut at(&daemon, "a.test"), "alice", "correct horse").starts_with("530 "));
}

#[test]
fn without_hosts_every_name_is_accepted() {
    let Some(daemon) = crate::daemon("HOST without hosts") else { return };
    let mut client = at(&daemon, "whatever.test");
    client.expect("HOST not a name", &[501]);
    client.login("alice", "correct horse");
}

#[test]
fn anonymous_can_belong_to_a_host() {
    if !root_or_skip("anonymous at a host") {
        return;
    }
    let mut site = site();
    let bob = site.account("bob").clone();
    for line in [
        "enabled = true".to_owned(),
        format!("home = \"{}\"", bob.home.display()),
        format!("uid = {0}\ngid = {0}", bob.uid),
        "hosts = [\"b.test\"]".to_owned(),
    ] {
        site.set_in("anonymous", &line);
    }
    let daemon = Daemon::start(site);
    at(&daemon, "b.test").login("anonymous", "guest@example.org");
    assert!(tried(&mut at(&daemon, "a.test"), "anonymous", "guest").starts_with("530 "));
    assert!(tried(&mut daemon.connect(), "ftp", "guest").starts_with("530 "));
}
