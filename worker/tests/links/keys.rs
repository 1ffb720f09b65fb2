//! authd's part in TLS: a certificate, and signatures with its key; and clients that trust it.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, LazyLock},
};

use child_ipc::{
    Received,
    link::worker_keys::{AuthdEnd, Chain, FromKeys, KeyName, ToKeys},
    table,
    types::Blob,
    wire,
};
use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, SignatureScheme, SupportedProtocolVersion,
    client::WantsClientCert,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};

static MADE: LazyLock<(CertificateDer<'static>, PrivateKeyDer<'static>)> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["ftp.example".to_owned()]).unwrap();
    (made.cert.into(), PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()))
});

/// The name in the certificate.
pub fn name() -> ServerName<'static> {
    ServerName::try_from("ftp.example").unwrap()
}

/// The table of certificates, as authd sends it.
pub fn table() -> OwnedFd {
    let schemes = vec![SignatureScheme::ECDSA_NISTP256_SHA256.into()];
    let certificates = vec![Blob::new(&MADE.0).unwrap()];
    let (chain, mut room) = (Chain { key: KeyName([1; 32]), schemes, certificates }, vec![0; 32 << 10]);
    let chain = wire::encode(&chain, &mut room).unwrap();
    let memfd = memfd_create("certificates", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    let length = u32::try_from(chain.len()).unwrap().to_le_bytes();
    rustix::io::pwrite(&memfd, &[&length, chain].concat(), 0).unwrap();
    fcntl_add_seals(&memfd, table::SEALS).unwrap();
    memfd
}

/// authd's signing thread: signs what is asked for until the worker is gone.
pub fn sign(mut link: AuthdEnd) {
    let key = aws_lc_rs::sign::any_supported_type(&MADE.1).unwrap();
    std::thread::spawn(move || {
        while let Ok(Received { record: ToKeys::Sign(ask), .. }) = link.recv() {
            let signer = key.choose_scheme(&[ask.scheme.into()]).unwrap();
            let signature = signer.sign(ask.message.as_bytes()).unwrap();
            let _ = link.send(&FromKeys::Signed(ask.tag, Blob::cut(&signature)), &[]);
        }
    });
}

/// For a client, which keeps its tickets to itself and uses each once.
pub fn trusting(versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
    Arc::new(config(versions).with_no_client_auth())
}

/// For a client that shows a certificate of its own, which has so many names.
pub fn showing(versions: &[&'static SupportedProtocolVersion], names: usize) -> (Arc<ClientConfig>, Vec<u8>) {
    let names: Vec<_> = (0..names).map(|n| format!("{n}.client.example")).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (der, key) = (made.cert.der().to_vec(), PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()));
    (Arc::new(config(versions).with_client_auth_cert(vec![made.cert.into()], key).unwrap()), der)
}

fn config(versions: &[&'static SupportedProtocolVersion]) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let mut roots = RootCertStore::empty();
    roots.add(MADE.0.clone()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
}
