//! A certificate with its key in memory, as no worker has one outside of tests, and clients that trust it.

use std::sync::{Arc, LazyLock};

use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

#[derive(Debug)]
struct InMemory(Arc<CertifiedKey>);

impl ResolvesServerCert for InMemory {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

static MADE: LazyLock<(CertificateDer<'static>, PrivateKeyDer<'static>)> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["ftp.example".to_owned()]).unwrap();
    (made.cert.into(), PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()))
});

/// The name in the certificate.
pub fn name() -> ServerName<'static> {
    ServerName::try_from("ftp.example").unwrap()
}

/// For a worker.
pub fn certificates() -> Arc<dyn ResolvesServerCert> {
    let (certificate, key) = &*MADE;
    let key = aws_lc_rs::sign::any_supported_type(key).unwrap();
    Arc::new(InMemory(Arc::new(CertifiedKey::new(vec![certificate.clone()], key))))
}

/// For a client, which keeps its tickets to itself and uses each once.
pub fn trusting(versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(MADE.0.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}
