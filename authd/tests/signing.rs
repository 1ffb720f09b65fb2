//! Signatures: the real program signs TLS handshakes with keys only it has, at once, and nothing else.

mod harness;

use std::{
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use child_ipc::{
    RecvError,
    link::{
        log::Event,
        monitor_authd::{FromAuthd, ToAuthd},
        worker_authd,
        worker_keys::{Chain, FromKeys, KeyName, Sign, ToKeys},
    },
    types::Blob,
};
use harness::{Authd, PASSWORD, PLAIN, Worker};
use rcgen::{CertificateParams, KeyPair};
use rustix::fs::{MemfdFlags, memfd_create};
use rustls::{crypto::aws_lc_rs, server::ParsedCertificate};

const ED25519: u16 = 0x0807;

fn file(text: &str) -> OwnedFd {
    let fd = memfd_create("file", MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::fchmod(&fd, rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(rustix::io::write(&fd, text.as_bytes()).unwrap(), text.len());
    fd
}

fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> [String; 2] {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    [certificate.pem(), key.serialize_pem()]
}

/// Gives it files; what it says of them, and to the worker.
fn offer(authd: &mut Authd, worker: &mut Worker, texts: &[String]) -> Result<Vec<Chain>, (u8, String)> {
    let files: Vec<_> = texts.iter().map(|text| file(text)).collect();
    let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    authd.link.send(&ToAuthd::Certificates(true), &files).unwrap();
    judgement(authd).map(|()| certificates(worker))
}

fn judgement(authd: &mut Authd) -> Result<(), (u8, String)> {
    loop {
        match authd.hear() {
            FromAuthd::Certificates(_, why) if why.is_empty() => return Ok(()),
            FromAuthd::Certificates(place, why) => return Err((place, why.to_string())),
            FromAuthd::Log(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// What a worker is told.
fn certificates(worker: &mut Worker) -> Vec<Chain> {
    let mut received = worker.link.recv().unwrap();
    assert!(matches!(received.record, worker_authd::FromAuthd::Certificates));
    child_ipc::table::read(received.fds.pop().unwrap(), 16).unwrap()
}

fn tls13() -> Vec<u8> {
    [&[b' '; 64][..], b"TLS 1.3, server CertificateVerify\0", &[7; 32]].concat()
}

fn sign(worker: &mut Worker, key: KeyName, scheme: u16, message: &[u8]) -> FromKeys {
    let message = Blob::new(message).unwrap();
    worker.keys.send(&ToKeys::Sign(Sign { tag: 5, key, scheme, message }), &[]).unwrap();
    worker.keys.recv().unwrap().record
}

/// Whether an answer is a right signature of this message by the key of a chain.
fn is_right(answer: &FromKeys, chain: &Chain, message: &[u8]) -> bool {
    let FromKeys::Signed(5, signature) = answer else { panic!("{answer:?}") };
    let der = chain.certificates[0].as_bytes().into();
    let spki = ParsedCertificate::try_from(&der).unwrap().subject_public_key_info();
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    // The key is the rest of the SubjectPublicKeyInfo.
    let right = |key: &[u8], of: &dyn rustls::pki_types::SignatureVerificationAlgorithm| {
        of.verify_signature(key, message, signature.as_bytes()).is_ok()
    };
    (0..spki.len()).any(|at| algorithms.all.iter().any(|of| right(&spki[at..], *of)))
}

#[test]
fn a_handshake_is_signed_with_every_scheme_of_a_key() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    for algorithm in
        [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_RSA_SHA256]
    {
        let chains = offer(&mut authd, &mut worker, &pair(algorithm)).unwrap();
        for &scheme in &chains[0].schemes {
            let pkcs1 = matches!(scheme, 0x0401 | 0x0501 | 0x0601);
            let message = if pkcs1 { tls12() } else { tls13() };
            let answer = sign(&mut worker, chains[0].key, scheme, &message);
            assert!(is_right(&answer, &chains[0], &message), "{scheme:#06x}");
        }
    }
}

fn tls12() -> Vec<u8> {
    [&[9; 64][..], &[3, 0, 0x1d, 32], &[1; 32]].concat()
}

#[test]
fn a_worker_that_wants_anything_else_signed_is_refused_and_ended() {
    for (scheme, message, why) in [
        (ED25519, b"transfer everything to the bearer".to_vec(), "signatures are of TLS handshakes alone"),
        (0x0401, tls13(), "a signature scheme of TLS, and of its version"),
        (0x0201, tls12(), "a signature scheme of TLS, and of its version"),
    ] {
        let (mut authd, mut worker) = Authd::with_alice(PLAIN);
        let chains = offer(&mut authd, &mut worker, &pair(&rcgen::PKCS_ED25519)).unwrap();
        let mut other = authd.add_worker();
        assert_eq!(certificates(&mut other), chains);
        assert!(matches!(sign(&mut worker, chains[0].key, scheme, &message), FromKeys::Refused(5)));
        assert!(matches!(worker.keys.recv(), Err(RecvError::Closed)));
        let line = authd.hear_log(Event::Breach);
        assert!(line.starts_with("worker=0 ") && line.contains(why), "{line}");
        assert!(matches!(authd.hear(), FromAuthd::WorkerBreach(id) if id == worker.id));
        assert!(worker.is_closed());
        assert!(is_right(&sign(&mut other, chains[0].key, ED25519, &tls13()), &chains[0], &tls13()));
    }
}

#[test]
fn a_malformed_question_costs_only_the_worker() {
    let (mut authd, worker) = Authd::with_alice(PLAIN);
    rustix::net::send(&worker.keys, &[9, 9], rustix::net::SendFlags::empty()).unwrap();
    assert!(authd.hear_log(Event::Breach).contains("malformed"));
    assert!(matches!(authd.hear(), FromAuthd::WorkerBreach(id) if id == worker.id));
    let mut other = authd.add_worker();
    assert!(matches!(sign(&mut other, KeyName([0; 32]), ED25519, &tls13()), FromKeys::Refused(5)));
}

#[test]
fn a_broken_pair_changes_nothing_and_a_new_one_leaves_the_last_for_handshakes_under_way() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    let (first, second, third) = (pair(&rcgen::PKCS_ED25519), pair(&rcgen::PKCS_ED25519), pair(&rcgen::PKCS_ED25519));
    let one = offer(&mut authd, &mut worker, &first).unwrap().remove(0);
    let (place, why) = offer(&mut authd, &mut worker, &[first[0].clone(), second[1].clone()]).unwrap_err();
    assert!(place == 1 && why.contains("does not belong"), "{why}");
    assert!(is_right(&sign(&mut worker, one.key, ED25519, &tls13()), &one, &tls13()));
    let two = offer(&mut authd, &mut worker, &second).unwrap().remove(0);
    for chain in [&one, &two] {
        assert!(is_right(&sign(&mut worker, chain.key, ED25519, &tls13()), chain, &tls13()));
    }
    offer(&mut authd, &mut worker, &third).unwrap();
    assert!(matches!(sign(&mut worker, one.key, ED25519, &tls13()), FromKeys::Refused(5)));
    assert!(offer(&mut authd, &mut worker, &[]).unwrap().is_empty());
}

#[test]
fn a_signature_does_not_wait_for_password_checks() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    let chain = offer(&mut authd, &mut worker, &pair(&rcgen::PKCS_ECDSA_P256_SHA256)).unwrap().remove(0);
    // The one check thread is busy for seconds, and others wait for it.
    (1..4).for_each(|session| worker.ask_for(session, "slow", PASSWORD, [192, 0, 2, 1]));
    let begun = Instant::now();
    for _ in 0..16 {
        assert!(is_right(&sign(&mut worker, chain.key, 0x0403, &tls13()), &chain, &tls13()));
    }
    let (took, first) = (begun.elapsed(), worker.hear());
    assert!(took * 2 < begun.elapsed() && took < Duration::from_secs(30), "{took:?}, {first:?}");
}

#[test]
fn what_is_wrong_is_said_once_unless_it_is_asked_for_and_what_is_the_same_is_not_told_to_workers_again() {
    let (mut authd, mut worker) = Authd::with_alice(PLAIN);
    let (good, other) = (pair(&rcgen::PKCS_ED25519), pair(&rcgen::PKCS_ED25519));
    let bad = [good[0].clone(), other[1].clone()];
    offer(&mut authd, &mut worker, &good).unwrap();
    let mut look = |pair: &[String; 2], new| {
        let files = pair.each_ref().map(|text| file(text));
        authd.link.send(&ToAuthd::Certificates(new), &files.each_ref().map(AsFd::as_fd)).unwrap();
        judgement(&mut authd).is_ok()
    };
    assert_eq!([look(&good, false), look(&good, true)], [true; 2]);
    assert_eq!([look(&bad, false), look(&bad, false), look(&bad, true)], [false, true, false]);
    assert!(look(&other, false));
    let told = certificates(&mut worker);
    worker.ask(1, PASSWORD);
    assert_eq!((told.len(), worker.hear().0), (1, 1), "nothing came between");
}
