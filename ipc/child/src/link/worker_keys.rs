//! worker <-> authd's signing thread: signatures of TLS handshakes. Hostile in both directions.
//!
//! A link of its own beside [`super::worker_authd`], served by a thread of its own, for a worker waits for the answer: one
//! question at a time. What may be signed is authd's to judge (authd/src/sign/input.rs); no key is ever in a record.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::Channel;
use crate::call::{Call, NONE, Record};
use crate::types::Blob;

/// Longest message to be signed in bytes: TLS 1.2 signs two random values of 32 bytes, four of parameters and a point of P-384 (97);
/// TLS 1.3 a text of 98 bytes and a hash of 48.
pub const MESSAGE: usize = 192;
/// Longest signature in bytes: RSA of 8192 bits.
pub const SIGNATURE: usize = 1024;
/// Most certificates of a chain.
pub const CHAIN: usize = 8;
/// Longest certificate in DER, in bytes.
pub const CERTIFICATE: usize = 16 << 10;

/// Names a key: a digest of the certificate it belongs to, which authd has computed.
///
/// A worker that still has the chain of yesterday asks by that name, and is not given a signature of today's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyName(pub [u8; 32]);

/// What a worker asks.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToKeys {
    /// A signature, please.
    Sign(Sign),
}

/// A question. Answered once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sign {
    /// Comes back with the answer: one that comes too late is told by it from that to a later question.
    pub tag: u32,
    /// With which key.
    pub key: KeyName,
    /// `SignatureScheme` (RFC 8446 4.2.3).
    pub scheme: u16,
    /// What is to be signed: of a TLS server's handshake, or it is a breach.
    pub message: Blob<MESSAGE>,
}

/// What authd answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromKeys {
    /// Of this question, the signature as it stands in the handshake.
    Signed(u32, Blob<SIGNATURE>),
    /// Of this question: there is no such key (any more), it has no such scheme, or this is nothing to be signed.
    Refused(u32),
}

impl Call for Sign {
    type Reply = FromKeys;
    const SENT: RangeInclusive<usize> = NONE;
    const RETURNED: RangeInclusive<usize> = NONE;
}

/// What everybody may see of a key: one record of the table that comes with
/// [`FromAuthd::Certificates`](super::worker_authd::FromAuthd::Certificates).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The key of the first certificate.
    pub key: KeyName,
    /// Schemes it can sign with, best first; not empty.
    pub schemes: Vec<u16>,
    /// The certificates in DER, the server's own first; 1 to [`CHAIN`].
    pub certificates: Vec<Blob<CERTIFICATE>>,
}

impl Record for ToKeys {
    const CAP: usize = 512;
}

impl Record for FromKeys {
    const CAP: usize = SIGNATURE + 64;
}

impl Record for Chain {
    const CAP: usize = CHAIN * (CERTIFICATE + 4) + 256;
}

/// The worker's end.
pub type WorkerEnd = Channel<ToKeys, FromKeys>;
/// authd's end.
pub type AuthdEnd = Channel<FromKeys, ToKeys>;
