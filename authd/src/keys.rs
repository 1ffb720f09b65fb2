//! The files of `[[certificate]]`: read from descriptors the monitor opened, judged in pairs, all or none.
//!
//! Reads from: files of the admin's (trusted to be theirs, parsed with care all the same). Bytes of a key file are wiped when it
//! has been parsed; the parsed key stays in this process alone. What workers are given is public, and sealed.
//! Not here: signing (sign/mod.rs), opening files and noticing that they have changed (monitor/src/certificates.rs).

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use blake2::{Blake2s256, Digest};
use child_ipc::{
    link::worker_keys::{CERTIFICATE, CHAIN, Chain, KeyName},
    table,
    types::Blob,
};
use rustix::fs::{MemfdFlags, fcntl_add_seals, fstat, memfd_create};
use rustls::{
    SignatureScheme,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::{CertifiedKey, SigningKey},
};
use zeroize::{Zeroize, Zeroizing};

/// Longest file in bytes.
const LONGEST: usize = 256 << 10;

/// What a key may sign with, best first; what is not here is not supported.
pub const SCHEMES: &[SignatureScheme] = &[
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
];

/// Keys by what workers call them.
pub type Keyring = HashMap<KeyName, Arc<dyn SigningKey>>;

/// What is wrong with a file, and with which: its place among those given.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    /// From 0; the certificate of each pair comes before its key.
    pub place: u8,
    /// What, and the remedy.
    pub why: String,
}

/// Has the library do what it does once in a thread, and may not do after the seal.
///
/// # Errors
/// When the kernel gives no random bytes.
pub fn warm_up() -> Result<(), &'static str> {
    aws_lc_rs::default_provider().secure_random.fill(&mut [0; 32]).map_err(|_| "no random bytes")
}

/// Reads all pairs: the keys, and the table of chains for workers.
///
/// # Errors
/// The first file that cannot be used.
pub fn read(files: &[OwnedFd]) -> Result<(Keyring, OwnedFd), Wrong> {
    let (mut keys, mut chains) = (Keyring::new(), Vec::new());
    for (number, pair) in files.chunks(2).enumerate() {
        let wrong = |(key, why): (bool, String)| Wrong {
            place: u8::try_from(2 * number + usize::from(key)).unwrap_or(u8::MAX),
            why: format!("{why} (named by [[certificate]])"),
        };
        let [certificate, key] = pair else { return Err(wrong((false, "has no key".to_owned()))) };
        let (chain, key) = read_pair(certificate, key).map_err(wrong)?;
        keys.insert(chain.key, key);
        chains.push(chain);
    }
    let chains = sealed(&chains).map_err(|e| Wrong { place: 0, why: format!("memfd: {e}") })?;
    Ok((keys, chains))
}

/// What tells files from others: a digest of all that is in them, and of who may read them. `None`: they cannot be read.
pub fn fingerprint(files: &[OwnedFd]) -> Option<[u8; 32]> {
    let mut digest = Blake2s256::new();
    for file in files {
        let bytes = read_file(file).ok()?;
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(fstat(file).ok()?.st_mode.to_le_bytes());
        digest.update(&*bytes);
    }
    Some(digest.finalize().into())
}

/// Reads a pair; the error says whether it is the key's, and what is wrong.
fn read_pair(certificate: &OwnedFd, key: &OwnedFd) -> Result<(Chain, Arc<dyn SigningKey>), (bool, String)> {
    let certificates = read_chain(certificate).map_err(|why| (false, why))?;
    let key = read_key(key).map_err(|why| (true, why))?;
    let pair = CertifiedKey::new(certificates, key);
    pair.keys_match().map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => {
            (true, "does not belong to the certificate of its section; name the pair that was made together".to_owned())
        }
        other => (false, format!("its first certificate cannot be used: {other}")),
    })?;
    let schemes: Vec<u16> = schemes(&*pair.key).map(u16::from).collect();
    let blob = |der: &CertificateDer<'_>| {
        Blob::new(der).map_err(|_| (false, format!("holds a certificate of more than {CERTIFICATE} bytes")))
    };
    let certificates = pair.cert.iter().map(blob).collect::<Result<Vec<_>, _>>()?;
    let first = certificates.first().map(Blob::as_bytes).unwrap_or_default();
    let key = KeyName(Blake2s256::digest(first).into());
    Ok((Chain { key, schemes, certificates }, pair.key))
}

fn schemes(key: &dyn SigningKey) -> impl Iterator<Item = SignatureScheme> {
    SCHEMES.iter().copied().filter(|&scheme| key.choose_scheme(&[scheme]).is_some())
}

fn read_chain(file: &OwnedFd) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read_file(file)?;
    let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    match chain.map_err(|e| format!("is no PEM of certificates: {e}"))? {
        chain if chain.is_empty() => Err("holds no certificate in PEM (-----BEGIN CERTIFICATE-----)".to_owned()),
        chain if chain.len() > CHAIN => {
            Err(format!("holds {} certificates; name a chain of at most {CHAIN}", chain.len()))
        }
        chain => Ok(chain),
    }
}

fn read_key(file: &OwnedFd) -> Result<Arc<dyn SigningKey>, String> {
    let mode = fstat(file).map_err(|e| format!("fstat: {e}"))?.st_mode & 0o7777;
    if mode & 0o004 != 0 {
        return Err(format!("mode {mode:04o} lets everybody read a private key; chmod o-r"));
    }
    let text = read_file(file)?;
    if text.windows(9).any(|part| part == b"ENCRYPTED") {
        return Err("is encrypted; take the passphrase off (openssl pkey -in FILE -out NEW)".to_owned());
    }
    let mut key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        "holds no private key in PEM (-----BEGIN PRIVATE KEY-----, RSA PRIVATE KEY or EC PRIVATE KEY)".to_owned()
    })?;
    let loaded = aws_lc_rs::sign::any_supported_type(&key);
    key.zeroize();
    let loaded = loaded.ok().filter(|key| schemes(&**key).next().is_some());
    loaded.ok_or_else(|| {
        "holds a key of another kind than ECDSA (P-256, P-384), Ed25519 or RSA (2048 to 8192 bits)".to_owned()
    })
}

/// All bytes of a file, wiped when they are dropped.
fn read_file(file: &OwnedFd) -> Result<Zeroizing<Vec<u8>>, String> {
    // One piece from the beginning: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(vec![0; LONGEST + 1]);
    let mut length = 0;
    while let Some(free) = bytes.get_mut(length..).filter(|free| !free.is_empty()) {
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *free, length as u64));
        match read.map_err(|e| format!("cannot be read: {e}"))? {
            0 => break,
            more => length += more,
        }
    }
    if length > LONGEST {
        return Err(format!("is longer than {LONGEST} bytes"));
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// The table for workers, which nobody can change any more.
fn sealed(chains: &[Chain]) -> io::Result<OwnedFd> {
    let mut bytes = Vec::new();
    for chain in chains {
        let record = postcard::to_stdvec(chain).map_err(io::Error::other)?;
        bytes.extend(u32::try_from(record.len()).map_err(io::Error::other)?.to_le_bytes());
        bytes.extend(record);
    }
    let memfd = memfd_create("certificates", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let written = rustix::io::write(&memfd, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    fcntl_add_seals(memfd.as_fd(), table::SEALS)?;
    Ok(memfd)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512};
    use rcgen::{PKCS_ED25519, PKCS_RSA_SHA256};

    use super::*;

    fn file(bytes: &[u8]) -> OwnedFd {
        let fd = memfd_create("file", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::fchmod(&fd, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(rustix::io::write(&fd, bytes).unwrap(), bytes.len());
        fd
    }

    /// A self-signed certificate in PEM, and its key.
    fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> (String, KeyPair) {
        let key = KeyPair::generate_for(algorithm).unwrap();
        (CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap().pem(), key)
    }

    fn pem(label: &str, der: &[u8]) -> String {
        use base64ct::{Base64, Encoding};
        let text = Base64::encode_string(der);
        let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    /// The content of the first element of DER, and what follows it.
    fn element(der: &[u8]) -> (&[u8], &[u8]) {
        let (begin, length) = match der[1] {
            0x82 => (4, usize::from(der[2]) << 8 | usize::from(der[3])),
            0x81 => (3, usize::from(der[2])),
            short => (2, usize::from(short)),
        };
        der[begin..].split_at(length)
    }

    /// What a PKCS#8 key holds behind version and algorithm (RFC 5958 2).
    fn inner(pkcs8: &[u8]) -> &[u8] {
        element(element(element(element(pkcs8).0).1).1).0
    }

    fn taken(certificate: &str, key: &str) -> Vec<Chain> {
        let (keys, table) = read(&[file(certificate.as_bytes()), file(key.as_bytes())]).unwrap();
        assert_eq!(keys.len(), 1);
        table::read(table, 16).unwrap()
    }

    fn refused(certificate: &str, key: &str) -> (u8, String) {
        let wrong = read(&[file(certificate.as_bytes()), file(key.as_bytes())]).unwrap_err();
        (wrong.place, wrong.why)
    }

    #[test]
    fn every_kind_of_key_is_taken_in_every_form_it_has() {
        for (algorithm, own, schemes) in [
            (&PKCS_ECDSA_P256_SHA256, "EC PRIVATE KEY", &[0x0403][..]),
            (&PKCS_ECDSA_P384_SHA384, "EC PRIVATE KEY", &[0x0503]),
            (&PKCS_ED25519, "", &[0x0807]),
            (&PKCS_RSA_SHA256, "RSA PRIVATE KEY", &[0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601]),
        ] {
            let (certificate, key) = pair(algorithm);
            let mut forms = vec![key.serialize_pem()];
            if !own.is_empty() {
                forms.push(pem(own, inner(&key.serialize_der())));
            }
            for form in forms {
                let chains = taken(&certificate, &form);
                assert_eq!((chains.len(), chains[0].certificates.len()), (1, 1));
                assert_eq!(chains[0].schemes, schemes, "{form}");
            }
        }
    }

    #[test]
    fn a_pair_that_cannot_be_used_is_refused_with_its_place_and_a_remedy() {
        let ((certificate, key), (other, _)) = (pair(&PKCS_ED25519), pair(&PKCS_ED25519));
        let key = key.serialize_pem();
        let (odd, odd_key) = pair(&PKCS_ECDSA_P521_SHA512);
        let junk = pem("CERTIFICATE", b"junk");
        let locked = key.replace("PRIVATE", "ENCRYPTED PRIVATE");
        for (certificate, key, place, word) in [
            (&*other, &*key, 1, "does not belong to the certificate"),
            (&*odd, &*odd_key.serialize_pem(), 1, "another kind"),
            ("", &*key, 0, "holds no certificate in PEM"),
            (&*key, &*key, 0, "holds no certificate in PEM"),
            (&*junk, &*key, 0, "cannot be used"),
            (&*certificate.repeat(9), &*key, 0, "holds 9 certificates"),
            (&*certificate, "", 1, "holds no private key in PEM"),
            (&*certificate, &*certificate, 1, "holds no private key in PEM"),
            (&*certificate, &*locked, 1, "take the passphrase off"),
            (&*certificate, &*"x".repeat(LONGEST + 1), 1, "is longer than"),
        ] {
            let (at, why) = refused(certificate, key);
            assert!(at == place && why.contains(word), "{word}: {why}");
            assert!(!why.contains('\n'));
        }
    }

    #[test]
    fn a_key_that_everybody_may_read_is_refused() {
        let (certificate, key) = pair(&PKCS_ED25519);
        let open = file(key.serialize_pem().as_bytes());
        rustix::fs::fchmod(&open, rustix::fs::Mode::RUSR | rustix::fs::Mode::ROTH).unwrap();
        let wrong = read(&[file(certificate.as_bytes()), open]).unwrap_err();
        let why = "mode 0404 lets everybody read a private key; chmod o-r (named by [[certificate]])";
        assert_eq!(wrong.why, why);
    }

    #[test]
    fn one_bad_pair_of_two_and_neither_is_taken() {
        let ((certificate, key), (other, _)) = (pair(&PKCS_ED25519), pair(&PKCS_ED25519));
        let key = key.serialize_pem();
        let files = [&certificate, &key, &other, &key].map(|text| file(text.as_bytes()));
        assert_eq!(read(&files).unwrap_err().place, 3);
        assert!(read(&[]).unwrap().0.is_empty());
    }

    #[test]
    fn the_table_holds_no_byte_of_a_key_and_cannot_be_changed() {
        let (certificate, key) = pair(&PKCS_ED25519);
        let (_, table) = read(&[file(certificate.as_bytes()), file(key.serialize_pem().as_bytes())]).unwrap();
        let mut bytes = vec![0; 4096];
        let length = rustix::io::pread(&table, &mut bytes, 0).unwrap();
        let der = key.serialize_der();
        let seed = inner(&der);
        assert!(!bytes[..length].windows(16).any(|part| seed.windows(16).any(|secret| secret == part)));
        assert!(rustix::io::write(&table, b"x").is_err());
    }
}
