//! Certificates of clients (RFC 8446 4.4.2): asked for on control connections, and kept with the proof for authd, who judges.
//!
//! Reads from: clients (hostile). No chain is followed and no date looked at: accounts name certificates by their fingerprints. A
//! client without a certificate, or with one that nobody knows, is as welcome as another. rustls tells of a certificate without a
//! word about whose connection it is; so it is fetched after each step of a handshake ([`Clients::shown`]), as tickets are made.
//! Not here: whose certificate it is (authd/src/users.rs).

use std::sync::{Mutex, PoisonError};

use child_ipc::{link::worker_authd::Possession, types::Blob};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};

/// What stands in front of the hash that a client signs (RFC 8446 4.4.3).
const SIGNED: usize = 64 + b"TLS 1.3, client CertificateVerify\0".len();

/// What asks for certificates.
#[derive(Debug)]
pub(super) struct Clients {
    algorithms: WebPkiSupportedAlgorithms,
    /// Of the handshake that is being stepped.
    shown: Mutex<Option<Box<Possession>>>,
}

impl Clients {
    pub fn new() -> Self {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        Clients { algorithms, shown: Mutex::default() }
    }

    /// What the client whose handshake was just stepped has shown; there is nothing for the next one.
    pub fn shown(&self) -> Option<Box<Possession>> {
        // Nothing panics while it holds the lock (and a panic ends the process).
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // What is signed there is the whole handshake, which is not for authd: such a certificate counts as none.
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let valid = verify_tls13_signature(message, certificate, signed, &self.algorithms)?;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = possession(message, certificate, signed);
        Ok(valid)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// For authd; `None` where it is longer than authd takes.
fn possession(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Option<Box<Possession>> {
    let transcript = Blob::new(message.get(SIGNED..)?).ok()?;
    let (certificate, signature) = (Blob::new(certificate).ok()?, Blob::new(signed.signature()).ok()?);
    Some(Box::new(Possession { certificate, transcript, scheme: signed.scheme.into(), signature }))
}
