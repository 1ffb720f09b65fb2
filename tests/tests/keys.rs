//! TLS keys (issue 4, 2): handshakes are signed by authd alone, and pairs of files are taken over whole or not at all.

#[path = "keys/files.rs"]
mod files;
#[path = "keys/handshakes.rs"]
mod handshakes;

use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};

/// A self-signed certificate for `localhost` and its key, in PEM.
fn pair(algorithm: &'static SignatureAlgorithm) -> [String; 2] {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).expect("names").self_signed(&key);
    [certificate.expect("a certificate").pem(), key.serialize_pem()]
}
