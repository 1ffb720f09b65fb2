//! worker <-> authd: checks of passwords and of clients' certificates, and the certificates of TLS. Hostile in both directions.

use std::{net::IpAddr, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

use crate::{
    Channel,
    call::{Call, NONE, ONE, Record},
    types::{Blob, HostName, Secret, SessionId, UserName},
};

/// What a worker asks.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToAuthd {
    /// Is this the account's proof?
    Check(Check),
    /// The client of this check is gone: forget it if it has not begun.
    Forget(SessionId),
}

/// Longest certificate of a client in DER, in bytes.
pub const CERTIFICATE: usize = 4096;
/// Longest signature of a client in bytes: RSA of 8192 bits.
pub const SIGNATURE: usize = 1024;

/// A check of what a client proves itself with. Answered once, by [`Verdict`]; before an accepting verdict authd has sent its
/// [`Grant`](super::monitor_authd::Grant) to the monitor.
#[derive(Debug, Serialize, Deserialize)]
pub struct Check {
    /// A session for which the worker has not asked before.
    pub session: SessionId,
    /// Who the client says it is.
    pub user: UserName,
    /// What it offers as proof; `None`: is its certificate enough? If it is not, that counts as no failure.
    pub password: Option<Secret>,
    /// Where it comes from; decides whose turn it is in the queue.
    pub source: IpAddr,
    /// The host it has named; accounts of other hosts are refused as with a wrong password.
    pub host: Option<HostName>,
    /// Whether its control connection is under TLS. A worker's word, which authd cannot check: accounts that demand TLS are
    /// refused without, as with a wrong password.
    pub secured: bool,
    /// Its certificate, where it has shown one in its handshake and not logged in since.
    pub possession: Option<Box<Possession>>,
}

/// A client's certificate, and the proof that it has the key: its CertificateVerify (RFC 8446 4.4.3). TLS 1.2 has none that
/// can be told in so few bytes.
///
/// What was signed is not here: authd puts it together around the hash, so that it can be nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Possession {
    /// In DER.
    pub certificate: Blob<CERTIFICATE>,
    /// Of the handshake up to the certificate; 32 or 48 bytes, which no other handshake has.
    pub transcript: Blob<48>,
    /// `SignatureScheme` (RFC 8446 4.2.3).
    pub scheme: u16,
    /// By the certificate's key.
    pub signature: Blob<SIGNATURE>,
}

impl Call for Check {
    type Reply = Verdict;
    const SENT: RangeInclusive<usize> = NONE;
    const RETURNED: RangeInclusive<usize> = NONE;
}

/// What authd answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromAuthd {
    /// The answer to a check.
    Verdict(Verdict),
    /// The certificates from now on; one descriptor, a table (see [`crate::table`]) of [`Chain`](super::worker_keys::Chain)s.
    Certificates,
}

/// The answer to a [`Check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Of which session.
    pub session: SessionId,
    /// The outcome.
    pub outcome: Outcome,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Right; the monitor has been told.
    Accepted,
    /// Unknown, locked, of another host, without the TLS it demands, or wrong, password or certificate: never says which.
    Rejected,
    /// The queue is full; try later.
    Busy,
}

impl Record for ToAuthd {
    const CAP: usize = 1024 + CERTIFICATE + SIGNATURE + 64;
    const WIPE: bool = true;
}

impl Record for FromAuthd {
    const CAP: usize = 1024;
    fn descriptors(&self) -> RangeInclusive<usize> {
        if let FromAuthd::Certificates = self { ONE } else { NONE }
    }
}

/// The worker's end.
pub type WorkerEnd = Channel<ToAuthd, FromAuthd>;
/// authd's end.
pub type AuthdEnd = Channel<FromAuthd, ToAuthd>;
