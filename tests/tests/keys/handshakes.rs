//! A real rustls client, and the worker's half of the keys, with authd as the only process that has one.

use std::{
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use child_ipc::{
    link::{
        Confine,
        monitor_authd::{AuthdSettings, AuthdStart, FromAuthd, MonitorEnd, ToAuthd},
        worker_authd, worker_keys,
    },
    types::{Build, WorkerId},
};
use e2e::programs;
use rustix::{
    fs::{MemfdFlags, Mode, fchmod, memfd_create},
    net::sockopt::{Timeout, set_socket_timeout},
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
    version::{TLS12, TLS13},
};
use worker::tls::keys::Certificates;

use super::pair;

/// authd as its monitor sees it.
struct Authd {
    child: Child,
    link: MonitorEnd,
    next: u32,
}

impl Authd {
    fn start() -> Self {
        let (mut link, theirs) = MonitorEnd::pair().expect("a link");
        set_socket_timeout(&link, Timeout::Recv, Some(Duration::from_secs(60))).expect("setsockopt");
        let program = programs::of_this_profile().join("caisson-authd");
        let child = Command::new(program).stdin(Stdio::from(theirs)).spawn().expect("authd");
        let ids = child_ipc::types::Ids { uid: 64_123, gid: 64_123, groups: Vec::new() };
        let ids = rustix::process::geteuid().is_root().then_some(ids);
        let settings = AuthdSettings { max_concurrent_password_checks: 1, login_cache_ttl_secs: 0 };
        let start = AuthdStart { build: Build::THIS, confine: Confine { ids, best_effort: true }, settings };
        link.send(&ToAuthd::Start(start), &[]).expect("Start");
        Authd { child, link, next: 0 }
    }

    /// Gives it pairs of files; it must take them.
    fn take(&mut self, pairs: &[&[String; 2]]) {
        let files: Vec<OwnedFd> = pairs.iter().flat_map(|pair| pair.iter()).map(|text| file(text)).collect();
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        self.link.send(&ToAuthd::Certificates(true), &files).expect("Certificates");
        loop {
            match self.link.recv().expect("a record").record {
                FromAuthd::Certificates(_, why) => return assert!(why.is_empty(), "{why}"),
                FromAuthd::Ready(_) | FromAuthd::Log(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// What a new worker has of it.
    fn certificates(&mut self) -> Arc<Certificates> {
        let (mut checks, theirs) = worker_authd::WorkerEnd::pair().expect("a link");
        let (signs, ours) = worker_keys::AuthdEnd::pair().expect("a link");
        self.next += 1;
        let record = ToAuthd::AddWorker(WorkerId(self.next));
        self.link.send(&record, &[theirs.as_fd(), signs.as_fd()]).expect("AddWorker");
        drop((theirs, signs));
        let mut received = checks.recv().expect("a record");
        assert!(matches!(received.record, worker_authd::FromAuthd::Certificates));
        let certificates = Certificates::default();
        certificates.connect(ours).expect("a link");
        certificates.replace(received.fds.pop().expect("a table")).expect("chains");
        // authd drops a worker whose link for checks is closed.
        std::mem::forget(checks);
        Arc::new(certificates)
    }
}

impl Drop for Authd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn file(text: &str) -> OwnedFd {
    let fd = memfd_create("file", MemfdFlags::CLOEXEC).expect("memfd");
    fchmod(&fd, Mode::RUSR).expect("fchmod");
    assert_eq!(rustix::io::write(&fd, text.as_bytes()).expect("write"), text.len());
    fd
}

/// Shakes hands with a client that trusts this certificate, and says hello both ways; what went wrong otherwise.
fn shake_hands(
    certificates: &Arc<Certificates>,
    trusted: &str,
    version: &'static SupportedProtocolVersion,
) -> Result<(), rustls::Error> {
    let provider = || Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).expect("PEM")).expect("a root");
    let client = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[version])?;
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let server = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS12, &TLS13])?;
    let server = server.with_no_client_auth().with_cert_resolver(Arc::clone(certificates) as _);
    let mut client = ClientConnection::new(Arc::new(client), "localhost".try_into().expect("a name"))?;
    let mut server = ServerConnection::new(Arc::new(server))?;
    client.writer().write_all(b"hello").expect("buffered");
    server.writer().write_all(b"hello").expect("buffered");
    let mut said = [String::new(), String::new()];
    while said.iter().any(|said| said != "hello") {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).expect("a vector");
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).expect("a slice");
            server.process_new_packets()?;
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).expect("a vector");
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).expect("a slice");
            client.process_new_packets()?;
        }
        // Nothing more to be read is no error here.
        let _ = client.reader().read_to_string(&mut said[0]);
        let _ = server.reader().read_to_string(&mut said[1]);
    }
    assert_eq!(client.protocol_version(), Some(version.version));
    Ok(())
}

#[test]
fn a_client_shakes_hands_by_both_versions_with_every_kind_of_key_while_only_authd_has_it() {
    let mut authd = Authd::start();
    for algorithm in
        [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519, &rcgen::PKCS_RSA_SHA256]
    {
        let pair = pair(algorithm);
        authd.take(&[&pair]);
        let certificates = authd.certificates();
        for version in [&TLS12, &TLS13] {
            let done = shake_hands(&certificates, &pair[0], version);
            done.unwrap_or_else(|e| panic!("{algorithm:?} {:?}: {e}", version.version));
        }
    }
}

#[test]
fn handshakes_fail_clearly_when_authd_is_gone() {
    let mut authd = Authd::start();
    let pair = pair(&rcgen::PKCS_ED25519);
    authd.take(&[&pair]);
    let certificates = authd.certificates();
    shake_hands(&certificates, &pair[0], &TLS13).expect("authd is there");
    drop(authd);
    let failed = shake_hands(&certificates, &pair[0], &TLS13).expect_err("nobody signs");
    assert!(failed.to_string().contains("no signature from authd: it is gone"), "{failed}");
}

#[test]
fn a_worker_that_has_not_heard_of_the_new_certificate_still_shakes_hands_with_the_old_one() {
    let mut authd = Authd::start();
    let (old, new) = (pair(&rcgen::PKCS_ED25519), pair(&rcgen::PKCS_ECDSA_P256_SHA256));
    authd.take(&[&old]);
    let before = authd.certificates();
    authd.take(&[&new]);
    shake_hands(&before, &old[0], &TLS13).expect("the old key is there for a while");
    shake_hands(&authd.certificates(), &new[0], &TLS13).expect("the new one");
}
