//! Stored hashes: PHC strings of argon2id, the only form a user table may hold.
//!
//! Reads from: users.toml (caisson-config), the user table (authd) and our own `hash-password`. Both processes ask this one
//! judge, so that what `caissonctl check` calls valid is what authd takes. What is accepted is narrow on purpose: a hash weaker
//! than the OWASP minimum would be easy to guess, a greedy one would let a single login eat the machine.
//! Not here: computing a hash (authd/src/verify.rs). Root does not link it.
#![forbid(unsafe_code)]

use std::fmt;

use base64ct::{Base64Unpadded, Encoding};
use zeroize::Zeroize;

/// What one check costs (RFC 9106 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cost {
    /// Memory in KiB, 19,456 to 1,048,576.
    pub memory: u32,
    /// Passes, 2 to 64.
    pub passes: u32,
    /// Lanes, 1 to 16. They are computed one after the other on one thread.
    pub lanes: u32,
}

impl Cost {
    /// Of new hashes: 64 MiB, three passes, one lane (RFC 9106 4, second recommendation, less lanes).
    pub const DEFAULT: Cost = Cost { memory: 65_536, passes: 3, lanes: 1 };
}

/// A stored hash; its digest is wiped when it is dropped.
#[derive(PartialEq, Eq)]
pub struct Stored {
    cost: Cost,
    salt: Box<[u8]>,
    digest: Box<[u8]>,
}

/// Why a string is no stored hash; says what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unusable(pub &'static str);

impl Stored {
    /// Joins what `hash-password` or a stand-in has computed. `None` when salt or digest are out of range.
    pub fn new(cost: Cost, salt: &[u8], digest: &[u8]) -> Option<Self> {
        let fits = (8..=48).contains(&salt.len()) && (16..=64).contains(&digest.len());
        fits.then(|| Stored { cost, salt: salt.into(), digest: digest.into() })
    }

    /// Reads `$argon2id$v=19$m=M,t=T,p=P$SALT$DIGEST`, exactly in this form.
    pub fn parse(text: &[u8]) -> Result<Self, Unusable> {
        let text = std::str::from_utf8(text).map_err(|_| Unusable("not ASCII"))?;
        let mut fields = text.split('$');
        if (fields.next(), fields.next()) != (Some(""), Some("argon2id")) {
            return Err(Unusable("not a PHC string that begins with $argon2id$"));
        }
        if fields.next() != Some("v=19") {
            return Err(Unusable("v=19 must follow $argon2id$"));
        }
        let cost = parse_cost(fields.next().unwrap_or_default())?;
        let salt = decode(fields.next(), Unusable("the salt is not unpadded base64"))?;
        let mut digest = decode(fields.next(), Unusable("the digest is not unpadded base64"))?;
        let stored = match fields.next() {
            Some(_) => Err(Unusable("something follows the digest")),
            None => Stored::new(cost, &salt, &digest)
                .ok_or(Unusable("needs a salt of 8 to 48 and a digest of 16 to 64 bytes")),
        };
        digest.zeroize();
        stored
    }

    /// What a check against it costs.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// 8 to 48 bytes.
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// 16 to 64 bytes. Compare in constant time only.
    pub fn digest(&self) -> &[u8] {
        &self.digest
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.digest.zeroize();
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({:?}, ***)", self.cost)
    }
}

/// The PHC string.
impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { memory, passes, lanes } = self.cost;
        let (salt, digest) = (Base64Unpadded::encode_string(&self.salt), Base64Unpadded::encode_string(&self.digest));
        write!(f, "$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${digest}")
    }
}

fn parse_cost(field: &str) -> Result<Cost, Unusable> {
    let mut parts = field.split(',');
    let memory = number(parts.next(), "m=").filter(|m| (19_456..=1_048_576).contains(m));
    let passes = number(parts.next(), "t=").filter(|t| (2..=64).contains(t));
    let lanes = number(parts.next(), "p=").filter(|p| (1..=16).contains(p));
    Ok(Cost {
        memory: memory.ok_or(Unusable("m (memory in KiB) must be 19456 to 1048576"))?,
        passes: passes.ok_or(Unusable("t (passes) must be 2 to 64"))?,
        lanes: lanes
            .filter(|_| parts.next().is_none())
            .ok_or(Unusable("p (lanes) must be 1 to 16, and the last parameter"))?,
    })
}

/// A decimal number without sign or leading zero, as the PHC string format demands.
fn number(part: Option<&str>, name: &str) -> Option<u32> {
    let digits = part?.strip_prefix(name)?;
    if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

fn decode(field: Option<&str>, why: Unusable) -> Result<Vec<u8>, Unusable> {
    Base64Unpadded::decode_vec(field.unwrap_or_default()).map_err(|_| why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

    #[test]
    fn a_string_of_the_reference_library_comes_back_byte_for_byte() {
        let stored = Stored::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(stored.cost(), Cost { memory: 65_536, passes: 2, lanes: 1 });
        assert_eq!(stored.salt(), b"somesalt");
        assert_eq!(stored.to_string(), GOOD);
    }

    #[test]
    fn every_other_form_is_refused() {
        let with = |from: &str, to: &str| GOOD.replace(from, to);
        for bad in [
            String::new(),
            "plain".into(),
            with("argon2id", "argon2i"),
            with("argon2id", "argon2d"),
            with("v=19", "v=16"),
            with("$v=19", ""),
            with("m=65536", "m=19455"),
            with("m=65536", "m=1048577"),
            with("m=65536", "m=065536"),
            with("m=65536", "m=+65536"),
            with("m=65536", "m=99999999999"),
            with("t=2", "t=1"),
            with("t=2", "t=65"),
            with("p=1", "p=0"),
            with("p=1", "p=17"),
            with("p=1", "p=1,keyid=AA"),
            with("m=65536,t=2", "t=2,m=65536"),
            with("c29tZXNhbHQ", "c29tZQ"),
            with("c29tZXNhbHQ", "c29tZXNhbHQ="),
            with("c29tZXNhbHQ", &"YWFh".repeat(17)),
            with("CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "CTFhFdXP"),
            format!("{GOOD}$"),
            format!(" {GOOD}"),
            format!("{GOOD}\n"),
        ] {
            assert!(Stored::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_output_hides_the_digest() {
        let stored = Stored::parse(GOOD.as_bytes()).unwrap();
        assert!(!format!("{stored:?}").contains("CTFh") && format!("{stored:?}").ends_with("***)"));
    }

    proptest! {
        #[test]
        fn no_byte_string_makes_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = Stored::parse(&bytes);
        }

        #[test]
        fn what_is_accepted_is_written_back_the_same(m in 0u32..2_000_000, t in 0u32..80, p in 0u32..20,
                salt in "[A-Za-z0-9+/]{8,70}", digest in "[A-Za-z0-9+/]{16,90}") {
            let text = format!("$argon2id$v=19$m={m},t={t},p={p}${salt}${digest}");
            if let Ok(stored) = Stored::parse(text.as_bytes()) {
                prop_assert_eq!(stored.to_string(), text);
            }
        }
    }
}
