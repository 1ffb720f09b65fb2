//! A password on its way from the client to authd.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zeroize::Zeroize;

/// At most [`Secret::MAX`] bytes; wiped when dropped, prints as stars, is not cloned.
pub struct Secret(Vec<u8>);

impl Secret {
    /// Longest password in bytes.
    pub const MAX: usize = 512;

    /// Takes over `bytes`; `None` (and `bytes` wiped) when they are too long.
    ///
    /// The vector must not have grown before (growing leaves a copy behind): read into one of full capacity.
    pub fn new(mut bytes: Vec<u8>) -> Option<Self> {
        if bytes.len() <= Self::MAX {
            return Some(Secret(bytes));
        }
        bytes.zeroize();
        None
    }

    /// The bytes. Compare in constant time only.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "***")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Secret;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {} bytes", Secret::MAX)
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Secret, E> {
                if bytes.len() > Secret::MAX {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                Ok(Secret(bytes.to_vec()))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_prints_as_stars() {
        let secret = Secret::new(b"open sesame".to_vec()).unwrap();
        assert_eq!(format!("{secret:?}"), "***");
    }

    #[test]
    fn a_secret_longer_than_the_limit_is_refused() {
        assert!(Secret::new(vec![b'x'; Secret::MAX + 1]).is_none());
    }
}
