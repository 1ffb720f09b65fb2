//! Certificates of clients: what they let in, and what a taken-over worker can do with the proofs it sees.

mod harness;

use child_ipc::{
    link::{
        log::Event,
        monitor_authd::FromAuthd,
        user_record::{CertificateLogin, Fingerprint, UserRecord},
        worker_authd::{
            Check,
            Outcome::{self, Accepted, Rejected},
            Possession, ToAuthd,
        },
    },
    types::Blob,
};
use harness::{Authd, CACHED, CHEAP, PASSWORD, PLAIN, Worker, account, check, phc};
use rcgen::{CertificateParams, KeyPair};
use rustls::{SignatureScheme, crypto::aws_lc_rs, pki_types::PrivateKeyDer, sign::SigningKey};
use sha2::{Digest, Sha256};

const CLIENT: &[u8] = b"TLS 1.3, client CertificateVerify\0";

/// A client: its certificate and key.
struct Client {
    der: Vec<u8>,
    key: std::sync::Arc<dyn SigningKey>,
    scheme: SignatureScheme,
}

impl Client {
    fn with(algorithm: &'static rcgen::SignatureAlgorithm, scheme: SignatureScheme) -> Self {
        let pair = KeyPair::generate_for(algorithm).unwrap();
        let der = CertificateParams::new(vec![]).unwrap().self_signed(&pair).unwrap().der().to_vec();
        let key = aws_lc_rs::sign::any_supported_type(&PrivateKeyDer::Pkcs8(pair.serialize_der().into())).unwrap();
        Client { der, key, scheme }
    }

    fn new() -> Self {
        Self::with(&rcgen::PKCS_ECDSA_P256_SHA256, SignatureScheme::ECDSA_NISTP256_SHA256)
    }

    fn fingerprint(&self) -> Fingerprint {
        Sha256::digest(&self.der).into()
    }

    /// What it signs in a handshake with this transcript.
    fn shows(&self, transcript: &[u8]) -> Possession {
        self.signs(transcript, &[&[b' '; 64], CLIENT, transcript].concat())
    }

    /// What a worker may make of what it signs elsewhere.
    fn signs(&self, transcript: &[u8], message: &[u8]) -> Possession {
        let signature = self.key.choose_scheme(&[self.scheme]).unwrap().sign(message).unwrap();
        Possession {
            certificate: Blob::new(&self.der).unwrap(),
            transcript: Blob::new(transcript).unwrap(),
            scheme: self.scheme.into(),
            signature: Blob::new(&signature).unwrap(),
        }
    }
}

fn second_factor(of: &[&Client]) -> UserRecord {
    let certificates = of.iter().map(|client| client.fingerprint()).collect();
    UserRecord { certificate_login: CertificateLogin::SecondFactor, certificates, ..harness::alice() }
}

fn login(name: &str, of: &[&Client]) -> UserRecord {
    let certificates = of.iter().map(|client| client.fingerprint()).collect();
    let certificate_login = CertificateLogin::Login;
    UserRecord { hash: None, certificate_login, certificates, ..account(name, "") }
}

fn started(users: &[UserRecord]) -> (Authd, Worker) {
    let mut authd = Authd::start(PLAIN);
    authd.set_users(users);
    let worker = authd.add_worker();
    (authd, worker)
}

fn send(worker: &mut Worker, session: u32, user: &str, password: Option<&[u8]>, shown: Option<Possession>) {
    let question = check(session, user, password.unwrap_or_default(), [192, 0, 2, (session % 250) as u8]);
    let password = question.password.filter(|_| password.is_some());
    let question = Check { password, possession: shown.map(Box::new), ..question };
    worker.link.send(&ToAuthd::Check(question), &[]).unwrap();
}

fn ask(worker: &mut Worker, session: u32, user: &str, password: Option<&[u8]>, shown: Option<Possession>) -> Outcome {
    send(worker, session, user, password, shown);
    let (of, outcome) = worker.hear();
    assert_eq!(of, session);
    outcome
}

/// What is logged next of this event, whatever else is said.
fn logged(authd: &mut Authd, event: Event) -> String {
    loop {
        match authd.hear() {
            FromAuthd::Log(record) if record.event == event => return record.text.to_string().replace("\\\"", "\""),
            _ => {}
        }
    }
}

/// What is logged of the next refused login.
fn refused(authd: &mut Authd) -> String {
    logged(authd, Event::LoginFailed)
}

#[test]
fn a_second_factor_is_needed_beside_the_password_and_is_nothing_without_it() {
    let (own, other) = (Client::new(), Client::new());
    let (mut authd, mut worker) = started(&[second_factor(&[&own])]);
    let hex: String = own.fingerprint().iter().map(|byte| format!("{byte:02x}")).collect();

    assert_eq!(ask(&mut worker, 1, "alice", Some(PASSWORD), None), Rejected);
    assert!(refused(&mut authd).starts_with("source=192.0.2.1 why=no-certificate worker=0 user=\"alice\""));
    assert_eq!(ask(&mut worker, 2, "alice", Some(PASSWORD), Some(other.shows(&[2; 32]))), Rejected);
    assert!(refused(&mut authd).contains("why=wrong-certificate worker=0 user=\"alice\" certificate="));
    assert_eq!(ask(&mut worker, 3, "alice", Some(b"wrong"), Some(own.shows(&[3; 32]))), Rejected);
    assert!(refused(&mut authd).contains(&format!("why=wrong-password worker=0 user=\"alice\" certificate={hex}")));
    // Alone it is not enough, and nothing has failed.
    assert_eq!(ask(&mut worker, 4, "alice", None, Some(own.shows(&[3; 32]))), Rejected);
    // The proof that came with a wrong password has let nobody in.
    assert_eq!(ask(&mut worker, 5, "alice", Some(PASSWORD), Some(own.shows(&[3; 32]))), Accepted);
    let line = logged(&mut authd, Event::Login);
    assert_eq!(line, format!("source=192.0.2.5 worker=0 user=\"alice\" certificate={hex}"));
    assert!(authd.stop().1.contains("refused=3 "));
}

#[test]
fn a_certificate_that_is_the_login_takes_no_password_and_no_password_takes_its_place() {
    let (own, other) = (Client::new(), Client::new());
    let bob = account("bob", &phc(CHEAP, PASSWORD));
    let (mut authd, mut worker) = started(&[login("robot", &[&other, &own]), bob]);
    assert_eq!(ask(&mut worker, 1, "robot", None, None), Rejected);
    assert_eq!(ask(&mut worker, 2, "robot", Some(PASSWORD), None), Rejected);
    assert!(refused(&mut authd).contains("why=no-certificate"));
    assert_eq!(ask(&mut worker, 3, "robot", None, Some(own.shows(&[1; 48]))), Accepted);
    assert_eq!(authd.grants().len(), 1);
    // It lets nobody in where it is not listed; and an account without any is asked for its password, whatever is shown.
    for (session, name) in [(4, "bob"), (5, "nobody"), (6, "robot2")] {
        assert_eq!(ask(&mut worker, session, name, None, Some(own.shows(&[2; 32]))), Rejected);
    }
    assert_eq!(ask(&mut worker, 7, "bob", Some(PASSWORD), Some(own.shows(&[2; 32]))), Accepted);
    assert_eq!(authd.grants().len(), 1);
}

#[test]
fn every_kind_of_key_that_tls_1_3_has_is_taken() {
    use SignatureScheme as S;
    let kinds: [(&'static rcgen::SignatureAlgorithm, &[S]); 4] = [
        (&rcgen::PKCS_ECDSA_P256_SHA256, &[S::ECDSA_NISTP256_SHA256]),
        (&rcgen::PKCS_ECDSA_P384_SHA384, &[S::ECDSA_NISTP384_SHA384]),
        (&rcgen::PKCS_ED25519, &[S::ED25519]),
        (&rcgen::PKCS_RSA_SHA256, &[S::RSA_PSS_SHA256, S::RSA_PSS_SHA512]),
    ];
    for (algorithm, schemes) in kinds {
        let mut client = Client::with(algorithm, schemes[0]);
        let (mut authd, mut worker) = started(&[login("robot", &[&client])]);
        for (session, scheme) in (1..).zip(schemes) {
            client.scheme = *scheme;
            let shown = client.shows(&[session as u8; 32]);
            assert_eq!(ask(&mut worker, session, "robot", None, Some(shown)), Accepted, "{scheme:?}");
        }
        assert_eq!(authd.grants().len(), schemes.len());
    }
}

#[test]
fn a_proof_lets_one_login_in_whichever_worker_brings_it_and_however_it_is_signed() {
    let own = Client::new();
    let (mut authd, mut worker) = started(&[second_factor(&[&own]), login("robot", &[&own])]);
    let mut other = authd.add_worker();
    assert_eq!(ask(&mut worker, 1, "robot", None, Some(own.shows(&[1; 32]))), Accepted);
    // ECDSA signs differently each time; it is the same handshake.
    for session in 2..4 {
        assert_eq!(ask(&mut worker, session, "robot", None, Some(own.shows(&[1; 32]))), Rejected);
        assert_eq!(ask(&mut other, session, "robot", None, Some(own.shows(&[1; 32]))), Rejected);
    }
    assert_eq!(ask(&mut other, 9, "robot", Some(b"x"), Some(own.shows(&[1; 32]))), Rejected);
    assert!(refused(&mut authd).contains("why=used-certificate worker=1 user=\"robot\" certificate="));
    // Two at once: the second is refused when the first is in, though both were in the queue.
    send(&mut worker, 10, "alice", Some(PASSWORD), Some(own.shows(&[2; 32])));
    send(&mut other, 10, "alice", Some(PASSWORD), Some(own.shows(&[2; 32])));
    let mut outcomes = [worker.hear().1, other.hear().1];
    outcomes.sort_by_key(|outcome| *outcome == Rejected);
    assert_eq!(outcomes, [Accepted, Rejected]);
    assert!(refused(&mut authd).contains("why=used-certificate"));
    assert_eq!(ask(&mut other, 11, "robot", None, Some(own.shows(&[3; 32]))), Accepted);
}

#[test]
fn what_the_cache_knows_is_the_password_and_not_the_certificate() {
    let own = Client::new();
    let mut authd = Authd::start(CACHED);
    authd.set_users(&[second_factor(&[&own])]);
    let mut worker = authd.add_worker();
    assert_eq!(ask(&mut worker, 1, "alice", Some(PASSWORD), Some(own.shows(&[1; 32]))), Accepted);
    assert_eq!(ask(&mut worker, 2, "alice", Some(PASSWORD), None), Rejected);
    assert_eq!(ask(&mut worker, 3, "alice", Some(PASSWORD), Some(own.shows(&[1; 32]))), Rejected);
    assert_eq!(ask(&mut worker, 4, "alice", Some(PASSWORD), Some(own.shows(&[4; 32]))), Accepted);
    // The refused ones took a whole check each.
    assert!(authd.stop().1.starts_with("cached=1 checked=3 refused=2 "));
}

#[test]
fn a_certificate_that_is_taken_out_is_refused_from_then_on() {
    let (own, other) = (Client::new(), Client::new());
    let (mut authd, mut worker) = started(&[login("robot", &[&own])]);
    assert_eq!(ask(&mut worker, 1, "robot", None, Some(own.shows(&[1; 32]))), Accepted);
    authd.set_users(&[login("robot", &[&other])]);
    assert!(logged(&mut authd, Event::Process).contains("taken over"));
    assert_eq!(ask(&mut worker, 2, "robot", None, Some(own.shows(&[2; 32]))), Rejected);
    // Back again, with what it has used before.
    authd.set_users(&[login("robot", &[&own])]);
    assert!(logged(&mut authd, Event::Process).contains("taken over"));
    assert_eq!(ask(&mut worker, 3, "robot", None, Some(own.shows(&[1; 32]))), Rejected);
    assert_eq!(ask(&mut worker, 4, "robot", None, Some(own.shows(&[2; 32]))), Accepted);
}

#[test]
fn a_worker_that_brings_a_certificate_without_its_clients_signature_is_ended() {
    let (own, thief) = (Client::new(), Client::new());
    let message = |spaces: u8, context: &[u8], rest: &[u8]| [&[spaces; 64], context, rest].concat();
    let server = b"TLS 1.3, server CertificateVerify\0";
    let stolen = |shown: Possession| Possession { certificate: Blob::new(&own.der).unwrap(), ..shown };
    let mut flipped = own.shows(&[1; 32]).signature.as_bytes().to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    let forged = [
        ("a key of the worker's own", stolen(thief.shows(&[1; 32]))),
        ("another handshake's", Possession { transcript: Blob::cut(&[2; 32]), ..own.shows(&[1; 32]) }),
        ("a server's signature", own.signs(&[1; 32], &message(b' ', server, &[1; 32]))),
        ("no spaces", own.signs(&[1; 32], &message(b'_', CLIENT, &[1; 32]))),
        ("the bare hash", own.signs(&[1; 32], &[1; 32])),
        ("no hash of this length", own.signs(&[1; 20], &message(b' ', CLIENT, &[1; 20]))),
        ("a damaged signature", Possession { signature: Blob::cut(&flipped), ..own.shows(&[1; 32]) }),
        ("no signature", Possession { signature: Blob::cut(b""), ..own.shows(&[1; 32]) }),
        ("another scheme", Possession { scheme: 0x0503, ..own.shows(&[1; 32]) }),
        ("a scheme of TLS 1.2", Possession { scheme: 0x0401, ..own.shows(&[1; 32]) }),
    ];
    for (what, shown) in forged {
        let (mut authd, mut worker) = started(&[login("robot", &[&own])]);
        let mut honest = authd.add_worker();
        send(&mut worker, 1, "robot", None, Some(shown));
        assert!(worker.is_closed(), "{what}");
        assert!(authd.hear_log(Event::Breach).contains("a certificate comes with its client's signature"), "{what}");
        assert!(matches!(authd.hear(), FromAuthd::WorkerBreach(id) if id == worker.id), "{what}");
        assert_eq!(ask(&mut honest, 1, "robot", None, Some(own.shows(&[7; 32]))), Accepted, "{what}");
    }
}

#[test]
fn what_is_nobodys_certificate_is_not_even_looked_at() {
    let own = Client::new();
    let (mut authd, mut worker) = started(&[login("robot", &[&own]), login("b", &[])]);
    let junk = |bytes: &[u8]| Possession {
        certificate: Blob::new(bytes).unwrap(),
        transcript: Blob::cut(b""),
        scheme: 0,
        signature: Blob::cut(b""),
    };
    for (session, bytes) in (1..).zip([&b""[..], b"x", &[0x30; 4096], &own.der[..own.der.len() - 1]]) {
        assert_eq!(ask(&mut worker, session, "robot", None, Some(junk(bytes))), Rejected);
        assert_eq!(ask(&mut worker, session, "b", None, Some(junk(bytes))), Rejected);
    }
    assert_eq!(authd.heard().len(), 0);
}
