//! Certificates of clients: whether a client has the key of the one it shows, and which proofs of that have been used up.
//!
//! Reads from: workers (hostile). A worker cannot make a proof, for it has no client's key; it can bring one that it has seen
//! before. So each proof lets one login in. Of which server's handshake it is, no hash tells: SECURITY.md says what follows.
//! Not here: whose certificate it is (users.rs), and what else a login takes (checks.rs).

use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
    sync::LazyLock,
};

use child_ipc::{
    Breach,
    link::{user_record::Fingerprint, worker_authd::Possession},
    types::UserName,
};
use rustls::{
    SignatureScheme,
    crypto::{WebPkiSupportedAlgorithms, aws_lc_rs},
    pki_types::CertificateDer,
};
use sha2::{Digest as _, Sha256};

use crate::sign::input::{HASHES, Input, SPACES};

/// Proofs remembered for each account: the last ones that let somebody in.
const KEPT: usize = 128;
/// What is signed, behind the spaces (RFC 8446 4.4.3).
const CONTEXT: &[u8] = b"TLS 1.3, client CertificateVerify\0";

static ALGORITHMS: LazyLock<WebPkiSupportedAlgorithms> =
    LazyLock::new(|| aws_lc_rs::default_provider().signature_verification_algorithms);

/// What a client has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// No certificate.
    Nothing,
    /// One that is not the account's; whether the client has its key does not matter.
    Other(Fingerprint),
    /// One of the account's, whose key it has.
    Proved(Proved),
    /// The same, by a proof that has let somebody in already.
    Used(Fingerprint),
}

/// A certificate whose key the client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proved {
    /// Of the certificate.
    pub fingerprint: Fingerprint,
    /// Names the proof: the beginning of the hash that was signed, and not the signature, of which ECDSA has two.
    transcript: [u8; 32],
}

#[cfg(test)]
impl Proved {
    /// As if it had been proved.
    pub fn unchecked(fingerprint: Fingerprint) -> Self {
        Proved { fingerprint, transcript: [0; 32] }
    }
}

impl Shown {
    /// Judges what a worker says that a client has shown; `is_own`: whether this certificate is the account's.
    ///
    /// # Errors
    /// When it is, and the signature is not of a client's handshake, or not by its key: an honest worker has seen that before.
    pub fn judge(possession: Option<&Possession>, is_own: impl Fn(&Fingerprint) -> bool) -> Result<Self, Breach> {
        let Some(possession) = possession else { return Ok(Shown::Nothing) };
        let fingerprint = Sha256::digest(possession.certificate.as_bytes()).into();
        if !is_own(&fingerprint) {
            return Ok(Shown::Other(fingerprint));
        }
        let transcript =
            prove(possession).ok_or(Breach::OutOfPhase("a certificate comes with its client's signature"))?;
        Ok(Shown::Proved(Proved { fingerprint, transcript }))
    }

    /// The certificate's.
    pub fn fingerprint(&self) -> Option<&Fingerprint> {
        match self {
            Shown::Nothing => None,
            Shown::Other(fingerprint) | Shown::Used(fingerprint) => Some(fingerprint),
            Shown::Proved(proved) => Some(&proved.fingerprint),
        }
    }
}

/// The proof's name, if the signature is what it should be.
fn prove(possession: &Possession) -> Option<[u8; 32]> {
    let transcript = possession.transcript.as_bytes();
    let scheme = SignatureScheme::from(possession.scheme);
    if !HASHES.contains(&transcript.len()) || !Input::Tls13.takes(scheme) {
        return None;
    }
    let message = [&[b' '; SPACES][..], CONTEXT, transcript].concat();
    let (_, algorithms) = ALGORITHMS.mapping.iter().find(|(known, _)| *known == scheme)?;
    let der = CertificateDer::from(possession.certificate.as_bytes());
    let certificate = webpki::EndEntityCert::try_from(&der).ok()?;
    // The first is the one of TLS 1.3: a scheme has one curve there.
    certificate.verify_signature(*algorithms.first()?, &message, possession.signature.as_bytes()).ok()?;
    transcript.first_chunk().copied()
}

/// As caisson-users(5) has it, without colons.
pub fn hex(fingerprint: &Fingerprint) -> String {
    fingerprint.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Proofs that have let somebody in. Each account has its own, so that nobody's logins make it forget another's.
#[derive(Debug, Default)]
pub struct Used(HashMap<UserName, VecDeque<[u8; 32]>>);

impl Used {
    /// What it is now, after all that happened.
    pub fn look(&self, user: &UserName, shown: Shown) -> Shown {
        match shown {
            Shown::Proved(proved) if self.0.get(user).is_some_and(|used| used.contains(&proved.transcript)) => {
                Shown::Used(proved.fingerprint)
            }
            other => other,
        }
    }

    /// This one lets somebody in now.
    pub fn remember(&mut self, user: &UserName, proved: Proved) {
        let used = self.0.entry(user.clone()).or_default();
        if used.len() >= KEPT {
            used.pop_front();
        }
        used.push_back(proved.transcript);
    }

    /// Forgets those of accounts that are no more.
    pub fn keep(&mut self, is_there: impl Fn(&UserName) -> bool) {
        self.0.retain(|user, _| is_there(user));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proved(number: usize) -> Proved {
        let mut transcript = [0; 32];
        transcript[..8].copy_from_slice(&number.to_le_bytes());
        Proved { fingerprint: [1; 32], transcript }
    }

    #[test]
    fn an_accounts_logins_make_it_forget_its_own_oldest_proof_and_no_other_accounts() {
        let (mut used, [alice, bob]) =
            (Used::default(), ["alice", "bob"].map(|n| UserName::new(n.as_bytes()).unwrap()));
        used.remember(&bob, proved(0));
        for number in 0..=KEPT {
            assert_eq!(used.look(&alice, Shown::Proved(proved(number))), Shown::Proved(proved(number)));
            used.remember(&alice, proved(number));
        }
        assert_eq!(used.look(&alice, Shown::Proved(proved(0))), Shown::Proved(proved(0)));
        for number in 1..=KEPT {
            assert_eq!(used.look(&alice, Shown::Proved(proved(number))), Shown::Used([1; 32]));
        }
        assert_eq!(used.look(&bob, Shown::Proved(proved(0))), Shown::Used([1; 32]));
        used.keep(|user| *user == alice);
        assert_eq!(used.look(&bob, Shown::Proved(proved(0))), Shown::Proved(proved(0)));
    }
}
