//! Values that cross links: checked when they are decoded, never after.

mod bytes;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

pub use bytes::{Blob, TooLong};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// One worker process; a respawned worker has a new one, so that nothing said of the dead one reaches it.
    WorkerId
);
id!(
    /// One login attempt of one client, drawn by its worker and never used twice by it: a client that logs in again
    /// (USER, REIN) gets a new one. Means nothing outside its worker's links.
    SessionId
);
id!(
    /// One broker process, as the monitor names it to workers.
    BrokerId
);
id!(
    /// One listener of the configuration.
    ListenerId
);

/// An account's name: 1 to 64 bytes, no control byte, no `/`, no `:`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct UserName(Blob<64>);

impl UserName {
    /// `None` when the bytes are no account name.
    pub fn new(name: &[u8]) -> Option<Self> {
        let fits = !name.is_empty() && !name.iter().any(|&b| b < 0x20 || b == 0x7f || b == b'/' || b == b':');
        if fits { Blob::new(name).ok().map(UserName) } else { None }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'de> Deserialize<'de> for UserName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = Blob::<64>::deserialize(from)?;
        UserName::new(bytes.as_bytes()).ok_or_else(|| de::Error::custom("not an account name"))
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

/// The hash of the wire types this process was built from.
///
/// First in the first record of every link inside one build; decoding another build's is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Build(u64);

impl Build {
    /// Of this very build.
    pub const THIS: Build = Build(include!(concat!(env!("OUT_DIR"), "/build_hash.rs")));
}

impl<'de> Deserialize<'de> for Build {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u64::deserialize(from)? {
            hash if hash == Build::THIS.0 => Ok(Build::THIS),
            _ => Err(de::Error::custom("the other end is of another build")),
        }
    }
}

/// Whose rights a process takes on: user, group, and supplementary groups (at most 32).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Supplementary groups; set exactly, an empty list drops all.
    pub groups: Vec<u32>,
}
