//! What no worker may remember: the private key and passwords, by reading all of its memory as root (issue 4, bars).
//!
//! The same look at authd finds the key, so it is not blind.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use e2e::{Daemon, Site, ftp::Client, procs::Process};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};

use super::wire::{BOTH, Session, trusting};
use crate::site;

/// Longer than what malloc writes over when it frees, and in no program.
const PASSWORD: &str = "Wire-7c1f0e55-a password that no process may keep-93b2";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=1$I3+h7eZkBDmlDGq5kww3xg$+/EnHtKjdIkYWUSVBNioUkvb9ITTjYoKhkkcVfKbnXo";

/// What a look at a process searches for.
struct Wanted {
    names: Vec<&'static str>,
    needles: Vec<Vec<u8>>,
}

impl Wanted {
    /// The key of this site, as it can lie in memory: file, DER, and the number itself in both orders of its bytes.
    fn key(site: &Site) -> Self {
        let text = fs::read(site.key()).expect("the key");
        let der = PrivatePkcs8KeyDer::from_pem_slice(&text).expect("PKCS #8");
        let der = der.secret_pkcs8_der();
        // ECPrivateKey (RFC 5915 3): version 1, then 32 bytes of the number.
        let mark = [2, 1, 1, 4, 32];
        let at = der.windows(mark.len()).position(|w| w == mark).expect("an ECPrivateKey") + mark.len();
        let scalar = der[at..at + 32].to_vec();
        let body = text.split(|&byte| byte == b'\n').nth(1).expect("a line of base64").to_vec();
        let reversed = scalar.iter().rev().copied().collect();
        let names = vec!["scalar", "scalar, last byte first", "base64", "DER"];
        Wanted { names, needles: vec![scalar, reversed, body, der.to_vec()] }
    }

    /// A password: its end, and its middle, since malloc writes over the beginning of what is freed.
    fn password() -> Self {
        let bytes = PASSWORD.as_bytes();
        let needles = vec![bytes[bytes.len() - 20..].to_vec(), bytes[16..36].to_vec()];
        Wanted { names: vec!["end of the password", "middle of the password"], needles }
    }

    /// What of it is in this process, and where.
    fn found(&self, process: Process) -> Vec<(&'static str, usize)> {
        let places = process.places_of(&self.needles);
        self.names.iter().zip(places).filter_map(|(name, place)| Some((*name, place?))).collect()
    }
}

/// Logs in, under TLS or in clear, moves bytes both ways, and leaves.
fn turn(site: &Site, number: usize, content: &[u8]) {
    let name = format!("STOR f{}", number % 8);
    if number % 3 == 2 {
        let mut client = Client::connect(site.address);
        client.login("alice", PASSWORD);
        client.stored(name, content);
        client.expect("QUIT", &[221]);
        return;
    }
    let mut session = Session::login(site, "alice", &[BOTH[number % 3]]);
    let (_, reply) = session.store(&name, content);
    assert_eq!(reply.code, 226);
    let (bytes, _, _) = session.fetch(&name.replace("STOR", "RETR"));
    assert_eq!(bytes.len(), content.len());
    session.control.expect("QUIT", &[221]);
}

/// A password may be on its way when a worker is looked at. What stays is at the same place each time.
fn stays(daemon: &Daemon, wanted: &Wanted) -> Vec<(&'static str, usize)> {
    let look = || daemon.workers().into_iter().flat_map(|worker| wanted.found(worker)).collect::<Vec<_>>();
    let mut found = look();
    for _ in 0..4 {
        if found.is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(150));
        let again = look();
        found.retain(|there| again.contains(there));
    }
    found
}

#[test]
fn no_worker_remembers_the_private_key_or_a_password_under_load_and_after_it() {
    let Some(mut site) = site("memory of workers") else { return };
    site.set("login_timeout_secs = 0");
    let account = site.account_mut("alice");
    (account.password, account.hash) = (PASSWORD, HASH);
    let daemon = Daemon::start(site);
    let (key, password) = (Wanted::key(&daemon.site), Wanted::password());
    let authd = key.found(daemon.authd());
    assert!(authd.iter().any(|(name, _)| name.starts_with("scalar")), "authd signs without a key: {authd:?}");

    // Sessions that go on, in clear and under TLS, and one that has said USER only.
    let mut clear = daemon.login("alice");
    let mut secured = BOTH.map(|version| Session::login(&daemon.site, "alice", &[version]));
    let over = AtomicBool::new(false);
    let content = e2e::tree::content(700_000, 9);
    thread::scope(|threads| {
        for first in 0..3 {
            let (over, daemon, content) = (&over, &daemon, &content);
            threads.spawn(move || {
                for number in (first..).step_by(4).take_while(|_| !over.load(Ordering::Relaxed)) {
                    turn(&daemon.site, number, content);
                }
            });
        }
        let mut looks = 0..15;
        let left = loop {
            let left: Vec<_> = daemon.workers().into_iter().flat_map(|worker| key.found(worker)).collect();
            let left = if left.is_empty() { stays(&daemon, &password) } else { left };
            if looks.next().is_none() || !left.is_empty() {
                break left;
            }
        };
        over.store(true, Ordering::Relaxed);
        assert!(left.is_empty(), "under load: {left:x?}");
    });
    clear.in_step();
    secured.iter_mut().for_each(|session| session.control.in_step());
    let after = |what| {
        for worker in daemon.workers() {
            let (key, password) = (key.found(worker), password.found(worker));
            assert!(key.is_empty() && password.is_empty(), "after {what}: {key:x?} {password:x?} in {worker:?}");
        }
    };
    after("the load");
    // What was freed last is still there, if it was not wiped.
    for version in BOTH {
        for _ in 0..4 {
            let config = trusting(&daemon.site, &[version]);
            let mut session = Session::begin(Client::connect(daemon.address()), config);
            session.control.expect("USER alice", &[331]);
            session.control.expect(format!("PASS {PASSWORD}"), &[230]);
            after("PASS under TLS");
        }
    }
    let mut client = Client::connect(daemon.address());
    client.expect("USER alice", &[331]);
    client.expect(format!("PASS {PASSWORD}"), &[230]);
    after("PASS in clear");
    drop((clear, secured));
    after("the last session");
    assert_eq!(daemon.workers().len(), 2);
}
