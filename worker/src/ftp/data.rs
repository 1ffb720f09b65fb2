//! What the protocol orders of a data connection, or of files alone, and how that ends.

use child_ipc::{link::worker_broker::Storage, types::Port};

/// How the next data connection comes about (RFC 959 3.2: one at a time; the last word of PASV, EPSV, PORT, EPRT).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Via {
    /// No port was agreed on. (RFC 959 knows a default port; no client has used it for decades, and connecting to a
    /// port the client did not name helps only attackers.)
    #[default]
    Nothing,
    /// The client connects to the passive port it was told.
    Passive,
    /// The monitor connects to the client at this port.
    Active(Port),
}

/// What to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// To the client: these bytes of the file.
    Send {
        /// First byte.
        from: u64,
        /// Behind the last byte: the size when the file was opened.
        to: u64,
        /// TYPE A: line ends become CR LF.
        text: bool,
        /// What they are kept on.
        storage: Storage,
    },
    /// From the client, to where the descriptor stands.
    Receive {
        /// TYPE A: CR LF becomes the local line end.
        text: bool,
        /// What it is kept on.
        storage: Storage,
        /// Whether it is on the disk (fsync(2)) when that has ended well.
        sync: bool,
        /// Where the file is to be cut when the handshake on the data connection is over.
        cut: Option<u64>,
    },
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Bytes moved over the data connection.
    pub bytes: u64,
    /// The outcome.
    pub how: How,
}

/// The outcome of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// All is moved, and the data connection is closed.
    Complete,
    /// No data connection came about.
    NoConnection,
    /// The client closed or reset the data connection.
    Reset,
    /// Under TLS, the client ended the data connection without close_notify: something may be missing.
    Cut,
    /// The TLS handshake on the data connection failed, or its end was not acceptable; in few words, why.
    Unsecured(&'static str),
    /// Nothing moved for `stall_timeout_secs`.
    Stalled,
    /// The client said ABOR.
    Aborted,
    /// The file became shorter while it was sent.
    Shrunk,
    /// Reading or writing the file failed with this errno.
    File(i32),
}

/// What to do with files, without a data connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The sum of these bytes of the file.
    Sum {
        /// How.
        algorithm: Algorithm,
        /// First byte.
        from: u64,
        /// Behind the last byte.
        to: u64,
        /// What the file is on.
        device: u64,
    },
    /// Copy so many bytes from the first descriptor to the second.
    Copy {
        /// The size of the source when it was opened.
        bytes: u64,
        /// What the two are on.
        devices: (u64, u64),
    },
}

/// A sum over the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// CRC-32 of IEEE 802.3, as in zip.
    Crc32,
    /// RFC 1321.
    Md5,
    /// FIPS 180-4.
    Sha1,
    /// FIPS 180-4.
    #[default]
    Sha256,
    /// FIPS 180-4.
    Sha512,
}

impl Algorithm {
    /// All, in the order of FEAT.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Sha256, Algorithm::Sha512, Algorithm::Sha1, Algorithm::Md5, Algorithm::Crc32];

    /// Its name in HASH, OPTS HASH and FEAT.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Crc32 => "CRC32",
            Algorithm::Md5 => "MD5",
            Algorithm::Sha1 => "SHA-1",
            Algorithm::Sha256 => "SHA-256",
            Algorithm::Sha512 => "SHA-512",
        }
    }
}
