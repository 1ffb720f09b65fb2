//! Data connections: PASV, EPSV, PORT, EPRT, and who may use them (RFC 959 3.2, RFC 2428, RFC 2577).

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
    time::Duration,
};

use e2e::{
    Daemon, Site,
    ftp::{self, Client},
    root_or_skip,
};

use crate::daemon;

#[test]
fn every_way_to_a_data_connection_carries_a_file_both_ways() {
    let Some(daemon) = daemon("data connections") else { return };
    let content = e2e::tree::content(300_000, 1);
    daemon.put("alice", "f", &content);
    let mut client = daemon.login("alice");
    assert_eq!(client.fetch("RETR f"), content);

    let address = client.pasv();
    assert_eq!(address.ip(), client.peer().ip(), "227 carries the local address of the control connection");
    let connection = ftp::data(TcpStream::connect(address).expect("connect"));
    client.expect("RETR f", &[150, 125]);
    assert_eq!(ftp::drain(connection), content);
    client.expect_reply(&[226]);

    let listener = client.active();
    client.expect("RETR f", &[150, 125]);
    assert_eq!(ftp::drain(ftp::accept(&listener)), content);
    client.expect_reply(&[226]);

    let listener = TcpListener::bind((client.local().ip(), 0)).expect("bind");
    client.expect(port_line(&listener), &[200]);
    client.expect("RETR f", &[150, 125]);
    let connection = ftp::accept(&listener);
    assert_eq!(connection.peer_addr().expect("peer").ip(), client.peer().ip());
    assert_eq!(ftp::drain(connection), content);
    client.expect_reply(&[226]);
}

fn port_line(listener: &TcpListener) -> String {
    let address = listener.local_addr().expect("getsockname");
    let [high, low] = address.port().to_be_bytes();
    format!("PORT {},{high},{low}", address.ip().to_string().replace('.', ","))
}

#[test]
fn epsv_all_forbids_every_other_way() {
    let Some(daemon) = daemon("EPSV ALL") else { return };
    let mut client = daemon.login("alice");
    client.expect("EPSV ALL", &[200]);
    let listener = TcpListener::bind((client.local().ip(), 0)).expect("bind");
    client.refused("PASV");
    client.refused(port_line(&listener));
    client.refused(format!("EPRT |1|127.0.0.1|{}|", listener.local_addr().expect("address").port()));
    assert_eq!(client.list("LIST"), [""; 0]);
}

#[test]
fn epsv_names_its_families_and_eprt_its_own() {
    let Some(daemon) = daemon("families") else { return };
    let mut client = daemon.login("alice");
    client.expect("EPSV 1", &[229]);
    let reply = client.expect("EPSV 3", &[522]);
    assert!(reply.text().contains("(1"), "{reply:?}");
    client.expect("EPRT |3|x|1|", &[522]);
    client.refused("EPRT |2|::1|2000|");
    client.refused("EPRT |1|127.0.0.1|0|");
    client.refused("EPRT |1|127.0.0.1|70000|");
    client.refused("EPRT ||||");
    client.refused("EPRT");
    client.in_step();
}

#[test]
fn connections_to_foreign_addresses_are_refused() {
    let Some(daemon) = daemon("bounce") else { return };
    let mut client = daemon.login("alice");
    let victim = TcpListener::bind("127.0.0.99:0").expect("bind");
    let port = victim.local_addr().expect("address").port();
    let [high, low] = port.to_be_bytes();
    for line in
        [format!("PORT 127,0,0,99,{high},{low}"), format!("EPRT |1|127.0.0.99|{port}|"), "PORT 10,0,0,1,9,9".into()]
    {
        // Refusing the transfer instead of the address is as good, as long as nobody is connected to.
        if client.ask(&line).is(2) {
            client.refused("LIST");
        }
    }
    for line in ["PORT 127,0,0,1,0,0", "PORT 127,0,0,1", "PORT 1,2,3,4,5,256", "PORT a,b,c,d,e,f", "PORT"] {
        client.refused(line);
    }
    victim.set_nonblocking(true).expect("fcntl");
    assert!(victim.accept().is_err(), "the server connected to a third party");
    client.in_step();
}

#[test]
fn active_mode_that_nobody_answers_ends_in_425() {
    let Some(daemon) = daemon("no listener") else { return };
    let mut client = daemon.login("alice");
    let listener = client.active();
    drop(listener);
    let reply = client.ask("LIST");
    let last = if reply.is(1) { client.reply() } else { reply };
    assert!(matches!(last.code, 425 | 426), "{last:?}");
    client.in_step();
}

#[test]
fn active_mode_can_be_forbidden() {
    if !root_or_skip("active = false") {
        return;
    }
    let mut site = Site::new();
    site.set("active = false");
    let daemon = Daemon::start(site);
    let mut client = daemon.login("alice");
    client.refused("EPRT |1|127.0.0.1|2000|");
    client.refused("PORT 127,0,0,1,9,9");
    assert_eq!(client.list("LIST"), [""; 0]);
}

#[test]
fn a_passive_port_that_nobody_calls_ends_in_425() {
    if !root_or_skip("data_connect_timeout_secs") {
        return;
    }
    let mut site = Site::new();
    site.set("data_connect_timeout_secs = 1");
    let daemon = Daemon::start(site);
    let mut client = daemon.login("alice");
    client.epsv();
    let reply = client.ask("LIST");
    let last = if reply.is(1) { client.reply() } else { reply };
    assert_eq!(last.code, 425);
    assert_eq!(client.list("LIST"), [""; 0]);
}

#[test]
fn a_transfer_without_a_data_connection_is_425() {
    let Some(daemon) = daemon("no data connection") else { return };
    daemon.put("alice", "f", b"x");
    let mut client = daemon.login("alice");
    for line in ["LIST", "RETR f", "STOR g"] {
        client.expect(line, &[425, 503]);
    }
    assert!(!daemon.home("alice", "g").exists(), "nothing is made before there is a way to fill it");
    client.in_step();
}

#[test]
fn repeated_passive_commands_use_up_no_ports() {
    if !root_or_skip("ten ports") {
        return;
    }
    let mut site = Site::new();
    site.passive = (18_100, 18_109);
    let daemon = Daemon::start(site);
    let mut client = daemon.login("alice");
    let first = client.epsv();
    for _ in 0..100 {
        client.epsv();
        client.pasv();
    }
    assert_eq!(client.list("LIST"), [""; 0], "the last port works");
    let mut other = daemon.login("bob");
    assert_eq!(other.list("LIST"), [""; 0], "another session gets a port");
    // Whoever calls a port of before gets nothing.
    if let Ok(stray) = TcpStream::connect(first) {
        assert!(!gets_a_byte(stray));
    }
}

#[test]
fn whoever_takes_the_port_from_another_address_gets_nothing() {
    let Some(daemon) = daemon("port stealing") else { return };
    daemon.put("alice", "secret", b"for alice only");
    let mut client = daemon.login("alice");
    let address = client.epsv();
    let thief = ftp::connect_from("127.0.0.66", address);
    let connection = ftp::data(TcpStream::connect(address).expect("connect"));
    client.expect("RETR secret", &[150, 125]);
    assert_eq!(ftp::drain(connection), b"for alice only");
    client.expect_reply(&[226]);
    assert!(!gets_a_byte(thief), "the thief got data");
}

fn gets_a_byte(mut stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("setsockopt");
    matches!(stream.read(&mut [0; 16]), Ok(1..))
}

#[test]
fn one_session_cannot_use_the_port_of_another() {
    let Some(daemon) = daemon("two sessions") else { return };
    daemon.put("alice", "f", b"for alice");
    daemon.put("bob", "f", b"for bob");
    let (mut alice, mut bob) = (daemon.login("alice"), daemon.login("bob"));
    let (to_alice, to_bob) = (alice.epsv(), bob.epsv());
    assert_ne!(to_alice, to_bob);
    let alices = ftp::data(TcpStream::connect(to_alice).expect("connect"));
    let bobs = ftp::data(TcpStream::connect(to_bob).expect("connect"));
    alice.expect("RETR f", &[150, 125]);
    bob.expect("RETR f", &[150, 125]);
    assert_eq!((ftp::drain(alices), ftp::drain(bobs)), (b"for alice".to_vec(), b"for bob".to_vec()));
}

#[test]
fn an_external_address_is_what_227_tells() {
    if !root_or_skip("passive_address") {
        return;
    }
    let mut site = Site::new();
    site.set("passive_address = \"203.0.113.7\"");
    let daemon = Daemon::start(site);
    let mut client = daemon.login("alice");
    let told = client.pasv();
    assert_eq!(told.ip().to_string(), "203.0.113.7");
    let connection = TcpStream::connect((client.peer().ip(), told.port())).expect("the port is the true one");
    client.expect("LIST", &[150, 125]);
    assert_eq!(ftp::drain(ftp::data(connection)), b"");
    client.expect_reply(&[226]);
    client.epsv();
}

#[test]
fn the_external_address_depends_on_the_clients_network() {
    if !root_or_skip("[[passive]]") {
        return;
    }
    let mut site = Site::new();
    site.set("passive_address = \"203.0.113.7\"");
    for section in [
        "clients = [\"192.0.2.0/24\", \"127.0.0.71\"]\naddress = \"10.0.0.5\"",
        "clients = [\"127.0.0.72\"]",
        "clients = [\"127.0.0.64/26\"]\naddress = \"10.0.0.6\"",
    ] {
        site.section("passive", section);
    }
    let daemon = Daemon::start(site);
    let own = daemon.address().ip().to_string();
    for (source, told) in [
        ("127.0.0.71", "10.0.0.5"),
        ("127.0.0.72", own.as_str()),
        ("127.0.0.73", "10.0.0.6"),
        ("127.0.0.74", "10.0.0.6"),
        ("127.0.0.128", "203.0.113.7"),
    ] {
        let mut client = Client::over(ftp::connect_from(source, daemon.address()));
        client.expect_reply(&[220]);
        client.login("alice", "correct horse");
        let address = client.pasv();
        assert_eq!(address.ip().to_string(), told, "{source}");
        let connection = ftp::connect_from(source, (daemon.address().ip(), address.port()).into());
        client.expect("LIST", &[150, 125]);
        assert_eq!(ftp::drain(connection), b"");
        client.expect_reply(&[226]);
        client.epsv();
    }
}

#[test]
fn ipv6_clients_use_the_extended_commands() {
    if !root_or_skip("IPv6") {
        return;
    }
    let Ok(probe) = TcpListener::bind("[::1]:0") else {
        e2e::skipped("IPv6", "this machine has no IPv6");
        return;
    };
    let mut site = Site::new();
    site.address = probe.local_addr().expect("address");
    drop(probe);
    let daemon = Daemon::start(site);
    daemon.put("alice", "f", b"over six");
    let mut client: Client = daemon.login("alice");
    assert_eq!(client.fetch("RETR f"), b"over six");
    client.expect("EPSV 2", &[229]);
    client.expect("EPSV 1", &[522]);
    let listener = client.active();
    client.expect("RETR f", &[150, 125]);
    assert_eq!(ftp::drain(ftp::accept(&listener)), b"over six");
    client.expect_reply(&[226]);
    client.refused("PORT 127,0,0,1,4,1");
    client.refused("PASV");
    client.refused("EPRT |1|127.0.0.1|2000|");
    client.in_step();
}

#[test]
fn active_connections_come_from_port_20_where_that_is_set_and_only_there() {
    if !root_or_skip("active_source_port_20") {
        return;
    }
    for setting in [true, false] {
        let mut site = Site::new();
        site.set(&format!("active_source_port_20 = {setting}"));
        let six = TcpListener::bind("[::1]:0").and_then(|probe| probe.local_addr()).ok();
        match six {
            Some(six) => drop(site.set_in("[listen]", &format!("address = \"{six}\""))),
            None => e2e::skipped("active_source_port_20 by IPv6", "this machine has no IPv6"),
        }
        let daemon = Daemon::start(site);
        let content = e2e::tree::content(300_000, 4);
        daemon.put("alice", "f", &content);
        for address in [Some(daemon.address()), six].into_iter().flatten() {
            let mut client = Client::connect(address);
            client.login("alice", daemon.site.account("alice").password);
            // Twice: the port is bound anew for each.
            for _ in 0..2 {
                let listener = client.active();
                client.expect("RETR f", &[150, 125]);
                let connection = ftp::accept(&listener);
                let from = connection.peer_addr().expect("getpeername");
                assert_eq!(from.ip(), client.peer().ip());
                assert_eq!(from.port() == 20, setting, "{from}");
                assert_eq!(ftp::drain(connection), content);
                client.expect_reply(&[226]);
            }
        }
    }
}
