//! Against authd: it cannot be made to vouch for what it did not check, and a breach ends the worker.

use child_ipc::{
    link::worker_authd::{Check, FromAuthd, Outcome, Possession, ToAuthd},
    types::{Blob, SessionId},
};
use e2e::{
    puppet::{Came, Link, Puppet, check, encoded},
    site,
};

use crate::Scene;

fn fatal(what: &str, bytes: &[u8], fds: &[&str]) {
    let Some(mut scene) = Scene::set(what) else { return };
    scene.puppet().send_raw(Link::Authd, bytes, fds);
    scene.judge(Link::Authd, what);
}

#[test]
fn damaged_records_are_fatal() {
    let whole = encoded(&ToAuthd::Forget(SessionId(300)));
    fatal("cut short", &whole[..whole.len() - 1], &[]);
    fatal("left over", &[&whole[..], b"x"].concat(), &[]);
    fatal("no such request", &[0xee, 1, 2, 3], &[]);
    fatal("over-long", &[0; 8000], &[]);
    fatal("an account's name with a slash", b"\x00\x01\x03a/b\x01x\x00\x7f\x00\x00\x01", &[]);
}

#[test]
fn an_empty_record_is_the_end_of_the_link() {
    let Some(mut scene) = Scene::set("empty") else { return };
    scene.puppet().send_raw(Link::Authd, b"", &[]);
    assert_eq!(scene.puppet().receive(Link::Authd, 5000), Came::Ended);
    scene.unnoticed("empty");
}

#[test]
fn descriptors_are_fatal() {
    let whole = encoded(&ToAuthd::Forget(SessionId(1)));
    fatal("one descriptor", &whole, &["null"]);
    fatal("forty descriptors", &whole, &["null"; 40]);
}

#[test]
fn asking_twice_about_one_session_is_fatal() {
    let Some(mut scene) = Scene::set("Check twice") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    puppet.log_in(&scene.daemon, "alice", 1);
    let again = check(&scene.daemon, "alice", 1);
    puppet.send(Link::Authd, &again, &[]);
    // What authd answers does not matter; what the monitor hears twice does.
    while matches!(puppet.receive(Link::Authd, 2000), Came::Record(..)) {}
    scene.judge(Link::Monitor, "Check twice");
}

#[test]
fn a_wrong_password_gives_no_grant_and_no_broker() {
    let Some(mut scene) = Scene::set("wrong password") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    let ToAuthd::Check(mut ask) = check(&scene.daemon, "alice", 1) else { unreachable!("a check") };
    ask.password = child_ipc::types::Secret::new(b"guess".to_vec());
    puppet.send(Link::Authd, &ToAuthd::Check(ask), &[]);
    let (FromAuthd::Verdict(verdict), _) = puppet.expect(Link::Authd) else { panic!("no verdict") };
    assert_eq!(verdict.outcome, Outcome::Rejected);
    assert_eq!(puppet.receive(Link::Monitor, 300), Came::Nothing);
    scene.unnoticed("wrong password");
}

#[test]
fn a_flood_of_checks_does_not_lock_others_out() {
    let Some(mut scene) = Scene::set("flood of checks") else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    for session in 1..2000 {
        let ToAuthd::Check(mut ask) = check(&scene.daemon, "alice", session) else { unreachable!("a check") };
        ask.password = child_ipc::types::Secret::new(format!("guess {session}").into_bytes());
        ask.source = std::net::Ipv4Addr::from_bits(0x0a00_0000 + session).into();
        if !puppet.send(Link::Authd, &ToAuthd::Check(ask), &[]) && !puppet.process.is_alive() {
            break;
        }
    }
    scene.unnoticed("flood of checks");
    // Somebody who has logged in before is served from the cache, whatever waits in the queue.
    scene.daemon.login("bob").in_step();
}

/// A site under TLS where robot logs in by the certificate with this fingerprint.
fn site_with_robot(fingerprint: &str) -> e2e::Site {
    let mut site = Puppet::stage(env!("CARGO_BIN_EXE_hostile-worker"));
    let files = ["server.pem", "server.key"].map(|name| site.dir.join(name));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    for (file, text) in files.iter().zip([made.cert.pem(), made.signing_key.serialize_pem()]) {
        site::write_private(file, &text);
    }
    let [certificate, key] = files.each_ref().map(|file| file.display());
    site.section("certificate", &format!("certificate = \"{certificate}\"\nkey = \"{key}\""));
    site.add_account("robot", 61_813).certificates = Some(("login", vec![fingerprint.to_owned()]));
    site
}

#[test]
fn a_certificate_without_its_clients_signature_is_fatal() {
    // Of what is no certificate at all, for nothing asks for that before the signature is looked at.
    const SHA256: &str = "03d66dd08835c1ca3f128cceacd1f31ac94163096b20f445ae84285bc0832d72";
    let site = site_with_robot(SHA256);
    site.write();
    let Some(mut scene) = Scene::set_on("forged certificate", site) else { return };
    let puppet = scene.puppet.as_mut().expect("not ended");
    let (FromAuthd::Certificates, 1) = puppet.expect(Link::Authd) else {
        panic!("a table of certificates comes first")
    };
    let ask = |certificate: &[u8], session| {
        let ToAuthd::Check(ask) = check(&scene.daemon, "robot", session) else { unreachable!("a check") };
        let (scheme, certificate) = (0x0807, Blob::new(certificate).expect("short"));
        let shown = Possession { certificate, transcript: Blob::cut(&[7; 32]), scheme, signature: Blob::cut(&[7; 64]) };
        ToAuthd::Check(Check { password: None, possession: Some(Box::new(shown)), ..ask })
    };
    // A stranger's is refused as any other; nobody has to have signed anything.
    puppet.send(Link::Authd, &ask(b"a stranger's", 1), &[]);
    let (FromAuthd::Verdict(verdict), 0) = puppet.expect(Link::Authd) else { panic!("no verdict") };
    assert_eq!(verdict.outcome, Outcome::Rejected);
    puppet.send(Link::Authd, &ask(b"certificate", 2), &[]);
    scene.judge(Link::Authd, "forged certificate");
}
