//! A record of authd's user table, which caisson-config writes and authd reads; the monitor hands the table on unread.

use serde::{Deserialize, Serialize};

use crate::types::{Blob, HostName, UserName};

/// One account, as authd needs it. Longest encoding: [`UserRecord::CAP`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRecord {
    /// The account.
    pub name: UserName,
    /// The stored hash, a PHC string of argon2id (at most 512 bytes); `None`: no password is ever right.
    pub hash: Option<Blob<512>>,
    /// Locked accounts cost the same check and are refused.
    pub locked: bool,
    /// Any password is right (the `anonymous` account, when it is enabled).
    pub any_password: bool,
    /// Clients must have named one of these hosts; none is anywhere. At most 16.
    pub hosts: Vec<HostName>,
    /// Clients must be under TLS.
    pub needs_tls: bool,
    /// What its certificates are for.
    pub certificate_login: CertificateLogin,
    /// Its certificates; at most [`CERTIFICATES`].
    pub certificates: Vec<Fingerprint>,
}

/// Most certificates of an account.
pub const CERTIFICATES: usize = 8;

/// SHA-256 of a certificate in DER.
pub type Fingerprint = [u8; 32];

/// What the certificates of an account are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CertificateLogin {
    /// Nothing.
    #[default]
    No,
    /// One of them is needed beside the password.
    SecondFactor,
    /// One of them is needed, and nothing else.
    Login,
}

impl UserRecord {
    /// Longest encoding in bytes.
    pub const CAP: usize = 8192;
}
