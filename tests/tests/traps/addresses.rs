//! What PASV and EPSV tell, over both families (RFC 959 4.1.2, RFC 2428).

use std::net::TcpListener;

use e2e::{Daemon, Site, ftp};

use crate::{daemon, daemon_with};

#[test]
fn t08_pasv_tells_the_configured_address_or_the_local_one() {
    let Some(daemon) = daemon_with("T08", &["passive_address = \"198.51.100.9\""]) else { return };
    let mut client = daemon.login("alice");
    let told = client.pasv();
    assert_eq!(told.ip().to_string(), "198.51.100.9");
    assert!((daemon.site.passive.0..=daemon.site.passive.1).contains(&told.port()));
    let reply = client.expect("EPSV", &[229]);
    assert!(!reply.text().contains("198.51"), "EPSV carries no address: {reply:?}");
    drop(daemon);
    let Some(daemon) = crate::daemon("T08") else { return };
    let mut client = daemon.login("alice");
    assert_eq!(client.pasv().ip(), client.peer().ip());
}

#[test]
fn t09_ipv6_sessions_have_data_connections_and_clear_refusals() {
    if !e2e::root_or_skip("T09") {
        return;
    }
    let Ok(probe) = TcpListener::bind("[::1]:0") else {
        e2e::skipped("T09", "this machine has no IPv6");
        return;
    };
    let mut site = Site::new();
    site.address = probe.local_addr().expect("address");
    drop(probe);
    let daemon = Daemon::start(site);
    let mut client = daemon.login("alice");
    assert_eq!(client.list("LIST"), [""; 0]);
    let listener = client.active();
    client.expect("LIST", &[150, 125]);
    assert_eq!(ftp::drain(ftp::accept(&listener)), b"");
    client.expect_reply(&[226]);
    let pasv = client.refused("PASV");
    assert!(!pasv.text().contains("0,0,0,0"), "{pasv:?}");
    assert!(client.refused("PORT 127,0,0,1,4,1").is(5));
    client.refused("EPRT |1|127.0.0.1|2000|");
    let unknown = client.expect("EPRT |3|x|1|", &[522]);
    assert!(unknown.text().contains('(') && unknown.text().contains(')'), "{unknown:?}");
    client.expect("EPSV 2", &[229]);
    let unknown = client.expect("EPSV 3", &[522]);
    assert!(unknown.text().contains("(2)") || unknown.text().contains("(1,2)"), "{unknown:?}");
}

#[test]
fn t09_ipv4_sessions_refuse_the_other_family() {
    let Some(daemon) = daemon("T09, IPv4") else { return };
    let mut client = daemon.login("alice");
    client.refused("EPRT |2|::1|2000|");
    client.expect("EPRT |3|x|1|", &[522]);
    client.expect("EPSV 1", &[229]);
    client.in_step();
}
