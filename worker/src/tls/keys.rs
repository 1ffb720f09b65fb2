//! The server's certificates, and a signature of each handshake from authd: no private key is in this process.
//!
//! Reads from: authd (hostile): certificates, and signatures, which a client checks anyway. A signature is a round trip on a link
//! of its own, for which the worker waits, [`PATIENCE`] at most: a signing thread that is slow or gone costs handshakes, and
//! until it has answered the late question it is asked no other.
//! Not here: what authd signs (authd/src/sign), and everything TLS does with it.

use std::{
    error, fmt, io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use child_ipc::{
    Channel, RecvError,
    link::worker_keys::{Chain, FromKeys, KeyName, Sign, ToKeys, WorkerEnd},
    table,
    types::Blob,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{
    Error, OtherError, SignatureAlgorithm, SignatureScheme,
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName},
    server::{ClientHello, ParsedCertificate, ResolvesServerCert},
    sign::{CertifiedKey, Signer, SigningKey},
};

/// How long a signature may take.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Most chains: as many as caisson.toml has of `[[certificate]]`.
const MOST: usize = 16;

/// All certificates; replaced at a reload, while sessions go on with what they have.
#[derive(Debug, Default)]
pub struct Certificates {
    chains: Mutex<Vec<Arc<CertifiedKey>>>,
    line: Arc<Mutex<Line>>,
}

impl Certificates {
    /// Takes the table authd has sent; the error says what is wrong with it, and those before stay. They stay, too, where a reload
    /// has taken all away: nobody begins with TLS then, and the data connections of whoever has need one.
    ///
    /// # Errors
    /// When it is not sealed, or holds anything but at most 16 chains.
    pub fn replace(&self, table: OwnedFd) -> io::Result<()> {
        let chains: Vec<Chain> = table::read(table, MOST)?;
        if chains.is_empty() {
            return Ok(());
        }
        let chains = chains.into_iter().map(|chain| self.certified(chain)).collect::<Option<_>>();
        *lock(&self.chains) = chains.ok_or_else(|| io::Error::other("a chain without certificates or schemes"))?;
        Ok(())
    }

    /// Takes the link on which authd signs; the one before is dead.
    ///
    /// # Errors
    /// When it is no link.
    pub fn connect(&self, link: OwnedFd) -> io::Result<()> {
        let mut link = Channel::from_fd(link)?;
        link.set_nonblocking(true);
        *lock(&self.line) = Line { link: Some(link), tag: 0, owed: false };
        Ok(())
    }

    /// authd is gone: handshakes fail until it is there again.
    pub fn disconnect(&self) {
        lock(&self.line).link = None;
    }

    /// Whether there is none: TLS cannot be offered.
    pub fn is_empty(&self) -> bool {
        lock(&self.chains).is_empty()
    }

    fn certified(&self, chain: Chain) -> Option<Arc<CertifiedKey>> {
        let certificates: Vec<_> = chain.certificates.iter().map(|der| der.as_bytes().to_vec().into()).collect();
        let schemes: Vec<_> = chain.schemes.into_iter().map(SignatureScheme::from).collect();
        let algorithm = algorithm(*schemes.first()?);
        certificates.first()?;
        let key = RemoteKey { name: chain.key, schemes, algorithm, line: Arc::clone(&self.line) };
        Some(Arc::new(CertifiedKey::new(certificates, Arc::new(key))))
    }

    /// The first that is valid for the name, if there is one, and can sign what the client checks.
    fn choose(&self, name: Option<&str>, offered: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let chains = lock(&self.chains);
        let usable = || chains.iter().filter(|chain| chain.key.choose_scheme(offered).is_some());
        let named = name.and_then(|name| ServerName::try_from(name).ok());
        let named = named.and_then(|name| usable().find(|chain| is_valid_for(chain, &name)));
        named.or_else(|| usable().next()).cloned()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name(), hello.signature_schemes())
    }
}

fn is_valid_for(chain: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let valid = |der: &CertificateDer<'_>| {
        ParsedCertificate::try_from(der).is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
    };
    chain.cert.first().is_some_and(valid)
}

fn algorithm(scheme: SignatureScheme) -> SignatureAlgorithm {
    match scheme {
        SignatureScheme::ED25519 => SignatureAlgorithm::ED25519,
        SignatureScheme::ECDSA_NISTP256_SHA256 | SignatureScheme::ECDSA_NISTP384_SHA384 => SignatureAlgorithm::ECDSA,
        _ => SignatureAlgorithm::RSA,
    }
}

/// A key as this process has it: its name.
#[derive(Debug, Clone)]
struct RemoteKey {
    name: KeyName,
    /// Best first.
    schemes: Vec<SignatureScheme>,
    algorithm: SignatureAlgorithm,
    line: Arc<Mutex<Line>>,
}

impl SigningKey for RemoteKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = *self.schemes.iter().find(|scheme| offered.contains(scheme))?;
        Some(Box::new(RemoteSigner { key: self.name, scheme, line: Arc::clone(&self.line) }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }
}

#[derive(Debug)]
struct RemoteSigner {
    key: KeyName,
    scheme: SignatureScheme,
    line: Arc<Mutex<Line>>,
}

impl Signer for RemoteSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let message = Blob::new(message)
            .map_err(|_| no_signature("no signature from authd: the message is longer than any handshake's"))?;
        let sign = Sign { tag: 0, key: self.key, scheme: self.scheme.into(), message };
        lock(&self.line).ask(sign).map_err(no_signature)
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}

/// Why authd has not signed, in words of ours.
#[derive(Debug)]
pub(super) struct NoSignature(pub &'static str);

impl fmt::Display for NoSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl error::Error for NoSignature {}

fn no_signature(why: &'static str) -> Error {
    Error::Other(OtherError(Arc::new(NoSignature(why))))
}

/// The link to the signing thread.
#[derive(Default)]
struct Line {
    link: Option<WorkerEnd>,
    /// Of the last question.
    tag: u32,
    /// Its answer was not there in time, and has not come since.
    owed: bool,
}

impl Line {
    /// Asks, and waits for the answer. The error says why there is none.
    fn ask(&mut self, sign: Sign) -> Result<Vec<u8>, &'static str> {
        if self.owed && self.answer(Duration::ZERO)?.is_none() {
            return Err("no signature from authd: it is busy with an earlier one");
        }
        self.tag = self.tag.wrapping_add(1);
        let link = self.link.as_mut().ok_or(GONE)?;
        if link.send(&ToKeys::Sign(Sign { tag: self.tag, ..sign }), &[]).is_err() {
            return Err(self.lose());
        }
        match self.answer(PATIENCE)? {
            Some(FromKeys::Signed(_, signature)) => Ok(signature.as_bytes().to_vec()),
            Some(FromKeys::Refused(_)) => {
                Err("no signature from authd: refused, it has another key now or none of that kind")
            }
            None => Err("no signature from authd: it took too long"),
        }
    }

    /// The answer to the last question; `None`: not within that time, and it is owed.
    fn answer(&mut self, patience: Duration) -> Result<Option<FromKeys>, &'static str> {
        let until = Instant::now() + patience;
        loop {
            match self.link.as_mut().ok_or(GONE)?.recv().map(|received| received.record) {
                Ok(answer) if tag(&answer) == self.tag => {
                    self.owed = false;
                    return Ok(Some(answer));
                }
                // Nothing but the last question is open.
                Ok(_) | Err(RecvError::Breach(_) | RecvError::Closed | RecvError::Io(_)) => return Err(self.lose()),
                Err(RecvError::WouldBlock) => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.owed = true;
                return Ok(None);
            }
            self.wait(left);
        }
    }

    fn wait(&self, left: Duration) {
        let Some(link) = &self.link else { return };
        // Interrupted, or out of memory: then it is tried again until the time is over.
        let _ = poll(&mut [PollFd::new(link, PollFlags::IN)], Timespec::try_from(left).ok().as_ref());
    }

    fn lose(&mut self) -> &'static str {
        self.link = None;
        GONE
    }
}

const GONE: &str = "no signature from authd: it is gone; caissond starts it again";

fn tag(answer: &FromKeys) -> u32 {
    match answer {
        FromKeys::Signed(tag, _) | FromKeys::Refused(tag) => *tag,
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line {{ link: {}, owed: {} }}", self.link.is_some(), self.owed)
    }
}

/// Nothing panics while it holds the lock (and a panic ends the process).
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use child_ipc::link::worker_keys::AuthdEnd;

    use super::*;

    const ED25519: SignatureScheme = SignatureScheme::ED25519;

    fn signer(certificates: &Certificates) -> RemoteSigner {
        RemoteSigner { key: KeyName([7; 32]), scheme: ED25519, line: Arc::clone(&certificates.line) }
    }

    fn connected() -> (Certificates, AuthdEnd) {
        let (authd, ours) = AuthdEnd::pair().unwrap();
        let certificates = Certificates::default();
        certificates.connect(ours).unwrap();
        (certificates, authd)
    }

    /// A chain for these names, whose key signs with these schemes.
    fn chain(names: &[&str], schemes: &[u16]) -> Chain {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        let certificates = vec![Blob::new(certificate.der()).unwrap()];
        Chain { key: KeyName([1; 32]), schemes: schemes.to_vec(), certificates }
    }

    #[test]
    fn a_client_gets_the_first_certificate_that_is_valid_for_its_name_and_that_it_can_check() {
        let certificates = Certificates::default();
        assert!(certificates.is_empty() && certificates.choose(None, &[ED25519]).is_none());
        let of = [
            chain(&["a.example"], &[0x0807]),
            chain(&["b.example", "*.b.example"], &[0x0807]),
            chain(&["b.example"], &[0x0804]),
        ];
        *lock(&certificates.chains) = of.iter().map(|chain| certificates.certified(chain.clone()).unwrap()).collect();
        let chosen = |name, schemes: &[SignatureScheme]| {
            let chosen = certificates.choose(name, schemes)?;
            of.iter().position(|chain| chain.certificates[0].as_bytes() == &*chosen.cert[0])
        };
        let both = [SignatureScheme::RSA_PSS_SHA256, ED25519];
        assert_eq!(chosen(None, &both), Some(0));
        assert_eq!(chosen(Some("b.example"), &both), Some(1));
        assert_eq!(chosen(Some("ftp.b.example"), &both), Some(1));
        assert_eq!(chosen(Some("b.example"), &both[..1]), Some(2));
        assert_eq!(chosen(Some("c.example"), &both), Some(0));
        assert_eq!(chosen(Some("a.example"), &[SignatureScheme::ECDSA_NISTP256_SHA256]), None);
    }

    #[test]
    fn without_authd_a_handshake_fails_at_once() {
        let certificates = Certificates::default();
        assert!(signer(&certificates).sign(b"x").unwrap_err().to_string().contains("it is gone"));
        let (certificates, authd) = connected();
        drop(authd);
        assert!(signer(&certificates).sign(b"x").unwrap_err().to_string().contains("it is gone"));
        assert!(signer(&certificates).sign(&[0; 1000]).unwrap_err().to_string().contains("longer than"));
    }

    #[test]
    fn a_signature_that_is_late_fails_one_handshake_after_a_second_and_the_next_ones_at_once() {
        let (certificates, mut authd) = connected();
        let signer = signer(&certificates);
        assert!(signer.sign(b"one").unwrap_err().to_string().contains("took too long"));
        let begun = Instant::now();
        assert!((0..100).all(|_| signer.sign(b"two").unwrap_err().to_string().contains("busy with an earlier one")));
        assert!(begun.elapsed() < PATIENCE);
        // The late answer is not taken for the next one's.
        let ToKeys::Sign(first) = authd.recv().unwrap().record;
        authd.send(&FromKeys::Signed(first.tag, Blob::cut(b"late")), &[]).unwrap();
        let answers = thread::spawn(move || {
            let ToKeys::Sign(next) = authd.recv().unwrap().record;
            assert_eq!(next.message.as_bytes(), b"three");
            authd.send(&FromKeys::Signed(next.tag, Blob::cut(b"right")), &[]).unwrap();
            let ToKeys::Sign(next) = authd.recv().unwrap().record;
            authd.send(&FromKeys::Refused(next.tag), &[]).unwrap();
            authd
        });
        assert_eq!(signer.sign(b"three").unwrap(), b"right");
        assert!(signer.sign(b"four").unwrap_err().to_string().contains("refused"));
        answers.join().unwrap();
    }

    #[test]
    fn an_answer_nobody_asked_for_loses_the_link() {
        let (certificates, mut authd) = connected();
        authd.send(&FromKeys::Signed(99, Blob::cut(b"forged")), &[]).unwrap();
        assert!(signer(&certificates).sign(b"x").is_err());
        assert!(lock(&certificates.line).link.is_none());
    }

    #[test]
    fn a_table_that_is_not_sealed_or_holds_an_empty_chain_changes_nothing() {
        let certificates = Certificates::default();
        let key = certificates.certified(chain(&["a.example"], &[0x0807])).unwrap();
        lock(&certificates.chains).push(key);
        let open = rustix::fs::memfd_create("open", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert!(certificates.replace(open).is_err());
        assert!(certificates.certified(chain(&["a.example"], &[])).is_none());
        assert!(!certificates.is_empty());
    }
}
