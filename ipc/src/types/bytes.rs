//! Byte strings with a bound that holds before anything is allocated.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// At most `N` bytes of any value; prints escaped.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Blob<const N: usize>(Box<[u8]>);

/// The bytes do not fit the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl<const N: usize> Blob<N> {
    /// Copies `bytes`.
    pub fn new(bytes: &[u8]) -> Result<Self, TooLong> {
        if bytes.len() <= N { Ok(Blob(bytes.into())) } else { Err(TooLong) }
    }

    /// Copies as much of `bytes` as fits: for texts of which a part is better than none.
    pub fn cut(bytes: &[u8]) -> Self {
        Blob(bytes[..bytes.len().min(N)].into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<const N: usize> fmt::Debug for Blob<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl<const N: usize> fmt::Display for Blob<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl<const N: usize> Serialize for Blob<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Blob<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor<const N: usize>;
        impl<const N: usize> de::Visitor<'_> for Visitor<N> {
            type Value = Blob<N>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {N} bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Blob<N>, E> {
                Blob::new(bytes).map_err(|TooLong| E::invalid_length(bytes.len(), &self))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}
