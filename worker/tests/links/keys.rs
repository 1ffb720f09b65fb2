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

/// Certificate and key that the parent has made, in the child's environment, as numbers.
pub const HANDED_ON: [&str; 2] = ["TEST_CERTIFICATE", "TEST_KEY"];

static MADE: LazyLock<(CertificateDer<'static>, PrivateKeyDer<'static>)> = LazyLock::new(|| {
    let handed = HANDED_ON.map(|name| std::env::var(name).ok());
    if let [Some(certificate), Some(key)] = handed {
        let bytes = |text: String| text.split(' ').map(|byte| byte.parse().unwrap()).collect::<Vec<u8>>();
        return (bytes(certificate).into(), PrivateKeyDer::Pkcs8(bytes(key).into()));
    }
    let made = rcgen::generate_simple_self_signed(["ftp.example".to_owned()]).unwrap();
    (made.cert.into(), PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()))
});

/// The name in the certificate.
pub fn name() -> ServerName<'static> {
    ServerName::try_from("ftp.example").unwrap()
}

/// For a child, which is to have the same.
pub fn environment() -> [(&'static str, String); 2] {
    let text = |bytes: &[u8]| bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
    [(HANDED_ON[0], text(&MADE.0)), (HANDED_ON[1], text(MADE.1.secret_der()))]
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
