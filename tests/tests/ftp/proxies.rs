//! Listeners behind proxies: who may connect, what must be said first, and what the address in it is used for (PROXY
//! protocol 1 and 2).

use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use e2e::{
    Daemon, Site,
    ftp::{self, Client},
    root_or_skip,
};
use nix::sys::signal::Signal;

const LINE: &[u8] = b"PROXY TCP4 203.0.113.7 198.51.100.1 4711 21\r\n";

/// The client of [`LINE`] by version 2, with an additional field behind it (an authority, 2.2.1).
fn binary() -> Vec<u8> {
    let addresses = [203, 0, 113, 7, 198, 51, 100, 1, 0x12, 0x67, 0, 21];
    [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x17"[..], &addresses, b"\x02\0\x08ftp.test"].concat()
}

fn local() -> &'static [u8] {
    b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"
}

/// A listener for one proxy, 127.0.0.2, and one for a network and IPv6.
fn site() -> Site {
    let mut site = Site::new();
    site.listen("proxies = [\"127.0.0.2\"]");
    site
}

fn daemon(scenario: &str) -> Option<Daemon> {
    root_or_skip(scenario).then(|| Daemon::start(site()))
}

/// Connects from the proxy's address and sends these bytes.
fn by_proxy(daemon: &Daemon, bytes: &[u8]) -> Client {
    let mut client = Client::over(ftp::connect_from("127.0.0.2", daemon.address()));
    client.raw(bytes);
    client
}

fn log_in(client: &mut Client) {
    client.expect_reply(&[220]);
    client.login("alice", "correct horse");
}

#[test]
fn a_client_behind_a_proxy_is_known_by_its_own_address_in_either_version() {
    let Some(daemon) = daemon("proxied clients") else { return };
    for header in [LINE.to_vec(), binary()] {
        let mut client = by_proxy(&daemon, &header);
        log_in(&mut client);
        daemon.logged(&["connect", "peer=203.0.113.7:4711 proxy=127.0.0.2:"]);
        client.expect("USER alice", &[331]);
        client.expect("PASS wrong", &[530]);
        daemon.logged(&["login-failed", "source=203.0.113.7 ", "why=wrong-password"]);
    }
}

#[test]
fn a_header_in_pieces_of_one_byte_is_waited_for_and_nothing_is_said_before_it() {
    let Some(daemon) = daemon("a header byte by byte") else { return };
    for header in [LINE.to_vec(), binary()] {
        let mut client = by_proxy(&daemon, b"");
        let (last, first) = header.split_last().expect("a header");
        for byte in first {
            client.raw(&[*byte]);
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(client.is_silent_for(Duration::from_millis(300)), "greeted before the header was whole");
        client.raw(&[*last]);
        log_in(&mut client);
    }
}

#[test]
fn commands_behind_the_header_are_kept() {
    let Some(daemon) = daemon("pipelined behind a header") else { return };
    for header in [LINE, &binary(), local(), b"PROXY UNKNOWN\r\n"] {
        let mut client = by_proxy(&daemon, &[header, b"USER alice\r\nPASS correct horse\r\nPWD\r\nNOO"].concat());
        for code in [220, 331, 230, 257] {
            client.expect_reply(&[code]);
        }
        client.raw(b"P\r\n");
        client.expect_reply(&[200]);
    }
}

#[test]
fn health_checks_of_a_proxy_are_its_own_connections() {
    let Some(daemon) = daemon("health checks") else { return };
    for header in [local(), b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN some thing\r\n"] {
        let mut client = by_proxy(&daemon, header);
        client.expect_reply(&[220]);
        let port = client.local().port();
        daemon.logged(&["connect", &format!("peer=127.0.0.2:{port} proxy=127.0.0.2:{port}")]);
        client.expect("QUIT", &[221]);
    }
    // Those that say nothing at all, too.
    drop(by_proxy(&daemon, b""));
    daemon.logged(&["refused", "closed before its PROXY header", "peer=127.0.0.2:"]);
}

#[test]
fn whoever_is_not_listed_is_closed_whatever_it_says() {
    let Some(daemon) = daemon("strangers at a proxied listener") else { return };
    for header in [LINE, &binary(), b"USER alice\r\n", b""] {
        let mut client = Client::over(ftp::connect_from("127.0.0.3", daemon.address()));
        // It may be closed already.
        let _ = client.socket().write_all(header);
        assert!(client.ends().is_empty());
    }
    daemon.logged(&["refused", "reason=\"not one of proxies\" peer=127.0.0.3:"]);
    assert!(!daemon.log().contains("203.0.113.7"));
}

#[test]
fn garbage_huge_headers_and_plain_clients_are_closed_with_a_reason() {
    let Some(daemon) = daemon("bad headers") else { return };
    let signature = b"\r\n\r\n\0\r\nQUIT\n";
    let huge = [&signature[..], b"\x21\x11\xff\xff", &[0; 70_000]].concat();
    for (header, why) in [
        (&b"USER alice\r\nPASS correct horse\r\n"[..], "no PROXY header"),
        (b"\0", "no PROXY header"),
        (b"PROXY TCP4 203.0.113.7 198.51.100.1 4711\r\n", "PROXY line malformed"),
        (&[b"PROXY UNKNOWN ", &b"x"[..], &[b'y'; 4000]].concat(), "PROXY line too long"),
        (&[&signature[..], b"\x11\x11\0\0"].concat(), "another version"),
        (&[&signature[..], b"\x21\x99\0\0"].concat(), "unknown family"),
        (&[&signature[..], b"\x21\x11\0\x04abcd"].concat(), "too short for its addresses"),
        (&huge, "PROXY header too long"),
    ] {
        let mut client = by_proxy(&daemon, b"");
        // The other end may close before all of it is there.
        let _ = client.socket().write_all(header);
        let port = client.local().port();
        assert!(client.ends().is_empty(), "{why}");
        let line = daemon.logged(&["refused", &format!("peer=127.0.0.2:{port}")]);
        assert!(line.contains(why), "{why}: {line}");
    }
    log_in(&mut by_proxy(&daemon, LINE));
}

#[test]
fn a_header_that_does_not_come_in_time_is_waited_for_no_longer() {
    if !root_or_skip("silent proxies") {
        return;
    }
    let mut site = site();
    site.set("login_timeout_secs = 1");
    let daemon = Daemon::start(site);
    let began = Instant::now();
    let mut silent = by_proxy(&daemon, b"");
    let mut slow = by_proxy(&daemon, b"PROXY TCP4 203.");
    assert!(silent.ends().is_empty() && slow.ends().is_empty());
    assert!(began.elapsed() < Duration::from_secs(5));
    daemon.logged(&["refused", "no PROXY header in time", "peer=127.0.0.2:"]);
}

#[test]
fn connections_that_wait_for_a_header_are_bounded_and_end_with_the_server() {
    if !root_or_skip("a full lobby") {
        return;
    }
    let mut site = site();
    site.set("max_sessions = 2").set("workers = 1");
    let mut daemon = Daemon::start(site);
    let waiting = [by_proxy(&daemon, b"PROXY "), by_proxy(&daemon, b"")];
    assert!(by_proxy(&daemon, b"").ends().is_empty());
    daemon.logged(&["limit", "wait for their PROXY header", "peer=127.0.0.2:"]);
    drop(waiting);
    e2e::until("there is room again", || {
        let mut client = by_proxy(&daemon, LINE);
        (client.reply_or_end()?.code == 220).then_some(())
    });
    let mut waits = by_proxy(&daemon, b"PROXY ");
    daemon.stop();
    assert!(waits.ends().is_empty());
}

#[test]
fn limits_by_address_go_by_the_clients_address() {
    if !root_or_skip("limits behind a proxy") {
        return;
    }
    let mut site = site();
    site.set("max_sessions_per_address = 1");
    let daemon = Daemon::start(site);
    let from = |last: u8| by_proxy(&daemon, format!("PROXY TCP4 203.0.113.{last} 198.51.100.1 4711 21\r\n").as_bytes());
    let mut held: Vec<Client> = (1..10).map(from).collect();
    held.iter_mut().for_each(log_in);
    from(1).expect_reply(&[421]);
    daemon.logged(&["limit", "max_sessions_per_address", "peer=203.0.113.1:4711"]);
    held.remove(0).expect("QUIT", &[221]);
    e2e::until("there is room again", || (from(1).reply_or_end()?.code == 220).then_some(()));
}

#[test]
fn without_proxies_a_header_is_no_command() {
    let Some(daemon) = crate::daemon("headers at a plain listener") else { return };
    let mut client = daemon.connect();
    assert_eq!(client.ask(LINE.strip_suffix(b"\r\n").expect("a line")).code, 500);
    client.login("alice", "correct horse");
    assert!(!daemon.log().contains("203.0.113.7"));
}

#[test]
fn data_connections_come_from_the_client_or_from_its_proxy_and_from_nobody_else() {
    let Some(daemon) = daemon("data behind a proxy") else { return };
    daemon.put("alice", "f", b"for alice");
    // The client's own address must be one of this machine here.
    let mut client = by_proxy(&daemon, b"PROXY TCP4 127.0.0.44 127.0.0.1 4711 21\r\n");
    log_in(&mut client);
    for source in ["127.0.0.44", "127.0.0.2"] {
        let address = client.epsv();
        let thief = ftp::connect_from("127.0.0.3", address);
        let connection = ftp::connect_from(source, address);
        client.expect("RETR f", &[150, 125]);
        assert_eq!(ftp::drain(connection), b"for alice", "{source}");
        client.expect_reply(&[226]);
        thief.set_read_timeout(Some(Duration::from_millis(300))).expect("setsockopt");
        let mut byte = [0];
        assert!(!matches!(std::io::Read::read(&mut &thief, &mut byte), Ok(1)), "the thief got data");
    }
}

#[test]
fn passive_mode_tells_where_the_client_has_connected_and_active_mode_is_refused() {
    let Some(daemon) = daemon("modes behind a proxy") else { return };
    let mut client = by_proxy(&daemon, LINE);
    log_in(&mut client);
    assert_eq!(client.pasv().ip().to_string(), "198.51.100.1");
    for line in ["PORT 203,0,113,7,9,9", "EPRT |1|203.0.113.7|2313|", "PORT 127,0,0,2,9,9"] {
        let reply = client.expect(line, &[502]);
        assert!(reply.text().contains("proxy"), "{reply:?}");
    }
    let features = client.expect("FEAT", &[211]).inner();
    assert!(!features.iter().any(|f| f.contains("EPRT")) && features.iter().any(|f| f.contains("EPSV")));
    client.expect("LIST", &[150, 425]);
    // A health check has nobody to be connected to either.
    let mut check = by_proxy(&daemon, local());
    log_in(&mut check);
    check.expect("EPRT |1|127.0.0.2|2313|", &[502]);
}

#[test]
fn ipv6_clients_of_an_ipv4_proxy_have_extended_passive_mode() {
    let Some(daemon) = daemon("families behind a proxy") else { return };
    daemon.put("alice", "f", b"over both");
    let mut client = by_proxy(&daemon, b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 21\r\n");
    log_in(&mut client);
    daemon.logged(&["connect", "peer=[2001:db8::7]:4711 proxy=127.0.0.2:"]);
    client.expect("PASV", &[522]);
    client.expect("EPSV 2", &[229]);
    let connection = ftp::connect_from("127.0.0.2", client.epsv());
    client.expect("RETR f", &[150, 125]);
    assert_eq!(ftp::drain(connection), b"over both");
    client.expect_reply(&[226]);
}

#[test]
fn a_reload_changes_who_may_connect() {
    let Some(mut daemon) = daemon("reload of proxies") else { return };
    let mut before = by_proxy(&daemon, LINE);
    log_in(&mut before);
    let mut undecided = Client::over(ftp::connect_from("127.0.0.2", daemon.address()));
    assert!(undecided.is_silent_for(std::time::Duration::from_millis(100)));
    daemon.site.listen("proxies = [\"127.0.0.3\", \"::1\"]");
    daemon.site.write();
    daemon.signal(Signal::SIGHUP);
    daemon.logged(&["reloaded"]);
    assert!(by_proxy_refused(&daemon));
    let _ = undecided.socket().write_all(LINE);
    assert!(undecided.ends().is_empty(), "a header of one that is struck off the list is believed no more");
    let mut client = Client::over(ftp::connect_from("127.0.0.3", daemon.address()));
    client.raw(LINE);
    log_in(&mut client);
    before.in_step();
}

/// Whether the connection ends without a word.
fn by_proxy_refused(daemon: &Daemon) -> bool {
    let mut client = Client::over(ftp::connect_from("127.0.0.2", daemon.address()));
    let _ = client.socket().write_all(LINE);
    client.ends().is_empty()
}

#[test]
fn a_proxy_of_ipv6_is_listed_by_its_network() {
    if !root_or_skip("an IPv6 proxy") {
        return;
    }
    let Ok(probe) = std::net::TcpListener::bind("[::1]:0") else {
        e2e::skipped("an IPv6 proxy", "this machine has no IPv6");
        return;
    };
    let mut site = Site::new();
    site.address = probe.local_addr().expect("address");
    drop(probe);
    site.listen("proxies = [\"::/64\"]");
    let daemon = Daemon::start(site);
    daemon.put("alice", "f", b"over six");
    let mut client = Client::connect_silently(daemon.address());
    client.raw(b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 21\r\n");
    log_in(&mut client);
    assert_eq!(client.fetch("RETR f"), b"over six");
    let address: SocketAddr = client.epsv();
    drop(TcpStream::connect(address));
    client.in_step();
}
