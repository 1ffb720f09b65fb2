//! What has to be under TLS, and whose data connections must resume (issue 4): by network, by account, and across reloads.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use e2e::{
    Daemon, Site,
    ftp::{Client, connect_from},
    site as files, until,
};
use nix::sys::signal::Signal;
use rustls::HandshakeKind;

use super::wire::{BOTH, Session, over, trusting};
use crate::site;

/// A client from this address.
fn from(source: &str, daemon: &Daemon) -> Client {
    let mut client = Client::over(connect_from(source, daemon.address()));
    client.expect_reply(&[220]);
    client
}

/// The same under TLS, and logged in.
fn secured(source: &str, daemon: &Daemon, name: &str) -> Session {
    let mut session = Session::begin(from(source, daemon), trusting(&daemon.site, &BOTH));
    session.control.login(name, daemon.site.account(name).password);
    session
}

/// What LIST is answered in the end, over a data connection in clear.
fn lists_in_clear(session: &mut Session) -> u16 {
    let data = session.data_in_clear();
    let begun = session.control.ask("LIST");
    drop(data);
    if begun.is(1) { session.control.reply().code } else { begun.code }
}

/// What LIST is answered in the end, over a data connection under TLS without a ticket. A refusal must name the cause.
fn lists_without_ticket(session: &mut Session, site: &Site) -> u16 {
    let stranger = trusting(site, &BOTH);
    let mut data = over(&stranger, session.data_in_clear());
    session.control.expect("LIST", &[150, 125]);
    let _ = data.read_to_end(&mut Vec::new());
    let reply = session.control.reply();
    assert!(reply.code == 226 || reply.text().contains("does not resume the TLS session"), "{reply:?}");
    reply.code
}

/// Takes what the site is over, and waits for it.
fn reload(daemon: &Daemon) {
    let reloads = daemon.log().matches("monitor: process reloaded").count();
    daemon.signal(Signal::SIGHUP);
    until("it has reloaded", || (daemon.log().matches("monitor: process reloaded").count() > reloads).then_some(()));
}

#[test]
fn what_has_to_be_under_tls_is_said_by_the_longest_network_that_has_the_client() {
    let Some(mut site) = site("tls_required by network") else { return };
    site.set("tls_required = \"data\"");
    for (clients, require) in [("127.0.5.0/24", "no"), ("127.0.0.0/16", "login"), ("127.0.5.9", "data")] {
        site.section("network", &format!("clients = [\"{clients}\"]\ntls_required = \"{require}\""));
    }
    let daemon = Daemon::start(site);
    // Nothing of the networks is said of this one.
    for (source, clear, control) in
        [("127.1.0.1", false, 521), ("127.0.0.1", false, 226), ("127.0.5.1", true, 226), ("127.0.5.9", false, 521)]
    {
        let mut client = from(source, &daemon);
        let told = client.ask("USER alice").code;
        assert_eq!(told, if clear { 331 } else { 530 }, "{source}");
        if clear {
            client.expect("PASS correct horse", &[230]);
        }
        let mut session = secured(source, &daemon, "alice");
        assert_eq!(lists_in_clear(&mut session), control, "{source}");
        session.control.expect("PBSZ 0", &[200]);
        session.control.expect("PROT C", if control == 521 { &[534] } else { &[200] });
        session.protect();
        assert_eq!(session.fetch("LIST").2.code, 226, "{source}");
    }
}

#[test]
fn behind_a_proxy_the_network_of_the_client_counts() {
    let Some(mut site) = site("tls_required behind a proxy") else { return };
    site.listen("proxies = [\"127.0.0.2\"]");
    site.section("network", "clients = [\"203.0.113.0/24\", \"2001:db8::/32\"]\ntls_required = \"login\"");
    let daemon = Daemon::start(site);
    let told = |header: &str| {
        let mut client = Client::over(connect_from("127.0.0.2", daemon.address()));
        client.raw(header.as_bytes());
        client.expect_reply(&[220]);
        client.ask("USER alice").code
    };
    assert_eq!(told("PROXY TCP4 203.0.113.7 198.51.100.1 4711 21\r\n"), 530);
    assert_eq!(told("PROXY TCP6 2001:db8::7 2001:db8::1 4711 21\r\n"), 530);
    assert_eq!(told("PROXY TCP4 203.0.114.7 198.51.100.1 4711 21\r\n"), 331);
    assert_eq!(told("PROXY UNKNOWN\r\n"), 331);
}

#[test]
fn whether_data_connections_must_resume_is_said_by_the_network() {
    let Some(mut site) = site("data_resumption by network") else { return };
    for (clients, resumption) in [("127.0.5.0/24", "required"), ("127.0.6.0/24", "off")] {
        site.section("network", &format!("clients = [\"{clients}\"]\ndata_resumption = \"{resumption}\""));
    }
    let daemon = Daemon::start(site);
    use HandshakeKind::{Full, Resumed};
    for (source, with, without) in [("127.0.0.1", Resumed, 226), ("127.0.5.1", Resumed, 522), ("127.0.6.1", Full, 226)]
    {
        let mut session = secured(source, &daemon, "alice");
        session.protect();
        let (_, kind, reply) = session.fetch("LIST");
        assert_eq!((kind, reply.code), (Some(with), 226), "{source}");
        assert_eq!(lists_without_ticket(&mut session, &daemon.site), without, "{source}");
        session.control.in_step();
    }
}

#[test]
fn an_account_that_requires_tls_is_refused_without_like_one_that_does_not_exist() {
    let Some(mut site) = site("tls_required by account") else { return };
    site.account_mut("alice").tls_required = Some("login");
    let daemon = Daemon::start(site);
    // Under TLS the password is right, and remembered from now on.
    let mut session = secured("127.0.0.1", &daemon, "alice");
    assert_eq!(lists_in_clear(&mut session), 226);
    let tried = |name: &str, password: &str| {
        let mut client = daemon.connect();
        client.expect(format!("USER {name}"), &[331]);
        let began = Instant::now();
        (format!("{:?}", client.ask(format!("PASS {password}"))), began.elapsed())
    };
    let right = tried("alice", "correct horse");
    daemon.logged(&["authd: login-failed", "why=no-tls", "user=\"alice\""]);
    let others = [tried("alice", "wrong"), tried("nobody", "correct horse"), tried("bob", "wrong")];
    assert!(others.iter().all(|(said, _)| *said == right.0), "{right:?}, {others:?}");
    assert_eq!(right.0, "530 Login incorrect.");
    // Nor does the cache answer for it: a hash of 19 MiB takes longer than that.
    assert!(right.1 > Duration::from_millis(5), "{right:?}");
    // What is asked for under TLS is answered from the cache as ever.
    secured("127.0.0.1", &daemon, "alice").control.in_step();
    let mut bob = daemon.login("bob");
    assert_eq!(bob.list("LIST"), [""; 0]);
}

#[test]
fn an_account_that_requires_tls_for_data_moves_none_in_clear_and_leaves_nothing_to_the_next_one() {
    let Some(mut site) = site("tls_required of data by account") else { return };
    site.account_mut("bob").tls_required = Some("data");
    let daemon = Daemon::start(site);
    let mut session = secured("127.0.0.1", &daemon, "bob");
    for line in ["LIST", "STOR f", "APPE f", "RETR f", "NLST", "MLSD", "STOU"] {
        let data = session.data_in_clear();
        let reply = session.control.expect(line, &[521]);
        assert!(reply.text().contains("PROT P"), "{reply:?}");
        drop(data);
    }
    assert_eq!(std::fs::read_dir(daemon.home("bob", "")).expect("list").count(), 0);
    session.control.expect("PBSZ 0", &[200]);
    session.control.expect("PROT C", &[534]);
    session.protect();
    assert_eq!(session.store("STOR f", b"content").1.code, 226);

    // Another account, on the same connection, may do what the settings let it.
    session.control.login("alice", "correct horse");
    session.control.expect("PROT C", &[200]);
    assert_eq!(lists_in_clear(&mut session), 226);
    session.control.login("bob", "battery staple");
    assert_eq!(lists_in_clear(&mut session), 521);
}

#[test]
fn the_strictest_of_file_network_and_account_counts() {
    let Some(mut site) = site("the strictest") else { return };
    site.set("tls_required = \"login\"");
    site.section("network", "clients = [\"127.0.5.0/24\"]\ntls_required = \"no\"");
    site.section("network", "clients = [\"127.0.6.0/24\"]\ntls_required = \"data\"");
    site.account_mut("alice").tls_required = Some("login");
    site.account_mut("bob").tls_required = Some("data");
    let daemon = Daemon::start(site);
    // A network that lets everybody in lets in whom it may.
    let mut client = from("127.0.5.1", &daemon);
    client.expect("USER alice", &[331]);
    client.expect("PASS correct horse", &[530]);
    for (source, name, told) in
        [("127.0.5.1", "alice", 226), ("127.0.5.1", "bob", 521), ("127.0.6.1", "alice", 521), ("127.0.0.1", "bob", 521)]
    {
        assert_eq!(lists_in_clear(&mut secured(source, &daemon, name)), told, "{source}, {name}");
    }
}

#[test]
fn a_reload_makes_nothing_weaker_for_sessions_that_are_there_and_a_stricter_one_counts_at_once() {
    let Some(mut site) = site("policies across reloads") else { return };
    site.set("data_resumption = \"required\"").set("tls_required = \"data\"");
    let mut daemon = Daemon::start(site);
    let mut session = secured("127.0.0.1", &daemon, "alice");
    let stays = |session: &mut Session, daemon: &Daemon, when: &str| {
        session.protect();
        assert_eq!(lists_without_ticket(session, &daemon.site), 522, "{when}");
        assert_eq!(session.fetch("LIST").1, Some(HandshakeKind::Resumed), "{when}");
        session.control.expect("PROT C", &[534]);
    };
    stays(&mut session, &daemon, "before");

    daemon.site.set("data_resumption = \"off\"").set("tls_required = \"no\"").write();
    reload(&daemon);
    stays(&mut session, &daemon, "after a weaker policy");
    // Whoever comes now is subject to what holds now.
    until("both workers have heard of it", || {
        (0..8).all(|_| daemon.connect().ask("USER alice").code == 331).then_some(())
    });
    let mut clear = daemon.login("alice");
    let mut later = secured("127.0.0.1", &daemon, "alice");
    later.protect();
    assert_eq!(later.fetch("LIST").1, Some(HandshakeKind::Full));
    assert_eq!(lists_without_ticket(&mut later, &daemon.site), 226);
    later.control.expect("PROT C", &[200]);
    assert_eq!(lists_in_clear(&mut later), 226);

    let config = std::fs::read_to_string(daemon.site.config()).expect("caisson.toml");
    let own = |line: &&str| ["[[certificate]]", "certificate =", "key ="].iter().any(|word| line.starts_with(word));
    let without: Vec<&str> = config.lines().filter(|line| !own(line)).collect();
    files::write_private(&daemon.site.config(), &without.join("\n"));
    reload(&daemon);
    until("both workers have heard of that", || {
        (0..8).all(|_| daemon.connect().ask("AUTH TLS").code == 504).then_some(())
    });
    stays(&mut session, &daemon, "after the certificates are gone");
    later.protect();
    assert_eq!(lists_without_ticket(&mut later, &daemon.site), 226);

    assert_eq!(clear.list("LIST"), [""; 0]);
    daemon.site.set("tls_required = \"data\"").write();
    reload(&daemon);
    until("nobody logs in in clear", || (0..8).all(|_| daemon.connect().ask("USER alice").code == 530).then_some(()));
    let data = clear.passive();
    clear.expect("LIST", &[521]);
    drop(data);
    later.control.expect("PROT C", &[534]);
}

#[test]
fn an_account_requires_more_from_its_next_login_on_after_a_reload() {
    let Some(site) = site("tls_required by account across reloads") else { return };
    let mut daemon = Daemon::start(site);
    let (mut clear, mut session) = (daemon.login("bob"), secured("127.0.0.1", &daemon, "bob"));
    daemon.site.account_mut("bob").tls_required = Some("data");
    daemon.site.write();
    reload(&daemon);
    assert_eq!(clear.list("LIST"), [""; 0]);
    assert_eq!(lists_in_clear(&mut session), 226);
    session.control.login("bob", "battery staple");
    assert_eq!(lists_in_clear(&mut session), 521);
    clear.expect("USER bob", &[331]);
    clear.expect("PASS battery staple", &[530]);
}
