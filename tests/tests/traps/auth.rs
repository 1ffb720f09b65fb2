//! Who a session is, from USER to USER (RFC 959 4.1.1).

use crate::daemon;

#[test]
fn t33_a_second_user_keeps_nothing_of_the_first() {
    let Some(daemon) = daemon("T33") else { return };
    daemon.put("alice", "alices", b"");
    daemon.put("bob", "bobs", b"");
    let mut client = daemon.login("alice");
    let allowed = client.ask("USER bob");
    if allowed.is(5) {
        // Refused: alice stays alice.
        assert_eq!(client.list("NLST"), ["alices"]);
        return;
    }
    client.refused("LIST");
    client.expect("PASS wrong", &[530]);
    client.refused("LIST");
    client.refused("PWD");
    client.expect("USER bob", &[331]);
    client.expect("PASS battery staple", &[230]);
    assert_eq!(client.pwd(), b"/");
    assert_eq!(client.list("NLST"), ["bobs"]);
}

#[test]
fn t33_pass_stands_behind_user() {
    let Some(daemon) = daemon("T33, sequence") else { return };
    let mut client = daemon.connect();
    client.expect("PASS correct horse", &[503]);
    client.expect("USER alice", &[331]);
    client.expect("NOOP", &[200]);
    let reply = client.expect("PASS correct horse", &[230, 503]);
    if reply.code == 230 {
        client.in_step();
    }
}
