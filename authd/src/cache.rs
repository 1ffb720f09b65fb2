//! Remembers credentials that were right a moment ago, so that a client that opens many sessions pays argon2id once.
//!
//! What is remembered is a keyed BLAKE2b digest (RFC 7693, 256 bits) of user name, stored hash and password. The key is
//! drawn at start and lives only here, so the digests are worthless without this very process. Only accepted
//! credentials get in; each is forgotten a fixed time after argon2id vouched for it, however often it is used.
//! Not here: who is asked about (checks.rs empties the cache whenever the user table changes).

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    io,
    time::{Duration, Instant},
};

use blake2::{
    Blake2bMac,
    digest::{KeyInit, Mac, consts::U32},
};
use child_ipc::types::UserName;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use stored_hash::Stored;

/// Entries of one generation. There are two; when the younger is full, the older is forgotten. So between one and two
/// times as many credentials are remembered, in at most 2.7 MiB (7/8 of the 32,768 places of 37 bytes a full map has).
const GENERATION: usize = 28_672;

/// A credential as the cache sees it.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The cache.
pub struct Cache {
    keyed: Blake2bMac<U32>,
    ttl: Duration,
    /// When each credential is forgotten.
    young: HashMap<Digest, Moment>,
    old: HashMap<Digest, Moment>,
    began: Instant,
    evicted: u64,
}

/// Seconds since the cache began; enough for 136 years.
type Moment = u32;

impl Cache {
    /// Draws a key. `ttl`: how long a credential is remembered; zero is off.
    pub fn new(ttl: Duration) -> io::Result<Self> {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(key.as_mut_slice()).map_err(|e| io::Error::other(format!("getrandom: {e}")))?;
        let keyed = Blake2bMac::new_from_slice(key.as_slice()).map_err(io::Error::other)?;
        let (young, old, evicted) = Default::default();
        Ok(Cache { keyed, ttl, young, old, began: Instant::now(), evicted })
    }

    /// Digests a credential. Every part goes in behind its length, so no two credentials read the same.
    pub fn digest(&self, user: &UserName, stored: &Stored, password: &[u8]) -> Digest {
        let cost = stored.cost();
        let cost = [cost.memory, cost.passes, cost.lanes].map(u32::to_le_bytes);
        let mut mac = self.keyed.clone();
        for part in [user.as_bytes(), cost.as_flattened(), stored.salt(), stored.digest(), password] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        Digest(mac.finalize().into_bytes().into())
    }

    /// Whether this credential was right a moment ago.
    pub fn knows(&self, digest: &Digest, now: Instant) -> bool {
        let moment = self.moment(now);
        [&self.young, &self.old].iter().any(|map| map.get(digest).is_some_and(|end| *end > moment))
    }

    /// Remembers a credential that argon2id has just found right.
    pub fn remember(&mut self, digest: Digest, now: Instant) {
        if self.ttl.is_zero() {
            return;
        }
        let end = self.moment(now + self.ttl);
        if self.young.len() >= GENERATION && !self.young.contains_key(&digest) {
            let gone = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            let moment = self.moment(now);
            self.evicted += gone.values().filter(|end| **end > moment).count() as u64;
        }
        self.young.insert(digest, end);
    }

    /// Forgets everything, and how long from now on; zero is off.
    pub fn reset(&mut self, ttl: Duration) {
        self.clear();
        self.ttl = ttl;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.young, self.old) = Default::default();
    }

    /// How long a credential is remembered.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Credentials forgotten for want of room, since start.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    fn moment(&self, at: Instant) -> Moment {
        Moment::try_from(at.saturating_duration_since(self.began).as_secs()).unwrap_or(Moment::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stored_hash::Cost;

    const TTL: Duration = Duration::from_secs(300);

    fn cache() -> Cache {
        Cache::new(TTL).unwrap()
    }

    fn stored(salt: &[u8], digest: &[u8]) -> Stored {
        Stored::new(Cost::DEFAULT, salt, digest).unwrap()
    }

    fn user(name: &str) -> UserName {
        UserName::new(name.as_bytes()).unwrap()
    }

    #[test]
    fn a_credential_is_known_until_its_time_is_over() {
        let (mut cache, now) = (cache(), Instant::now());
        let digest = cache.digest(&user("alice"), &stored(&[1; 8], &[2; 32]), b"secret");
        assert!(!cache.knows(&digest, now));
        cache.remember(digest, now);
        assert!(cache.knows(&digest, now));
        assert!(cache.knows(&digest, now + TTL - Duration::from_secs(2)));
        assert!(!cache.knows(&digest, now + TTL + Duration::from_secs(1)));
    }

    #[test]
    fn using_a_credential_does_not_prolong_it() {
        let (mut cache, now) = (cache(), Instant::now());
        let digest = cache.digest(&user("alice"), &stored(&[1; 8], &[2; 32]), b"secret");
        cache.remember(digest, now);
        for second in (0..290).step_by(10) {
            assert!(cache.knows(&digest, now + Duration::from_secs(second)));
        }
        assert!(!cache.knows(&digest, now + Duration::from_secs(301)));
    }

    #[test]
    fn any_difference_makes_another_credential() {
        let cache = cache();
        let all = [
            cache.digest(&user("alice"), &stored(&[1; 8], &[2; 32]), b"secret"),
            cache.digest(&user("alicf"), &stored(&[1; 8], &[2; 32]), b"secret"),
            cache.digest(&user("alice"), &stored(&[1; 9], &[2; 32]), b"secret"),
            cache.digest(&user("alice"), &stored(&[1; 8], &[3; 32]), b"secret"),
            cache.digest(&user("alice"), &stored(&[1; 8], &[2; 32]), b"secreT"),
            cache.digest(&user("alice"), &stored(&[1; 8], &[2; 32]), b""),
            // The same bytes, cut elsewhere.
            cache.digest(&user("alices"), &stored(&[1; 8], &[2; 32]), b"ecret"),
            self::cache().digest(&user("alice"), &stored(&[1; 8], &[2; 32]), b"secret"),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(all.iter().skip(i + 1).all(|other| one != other), "{i}");
        }
    }

    #[test]
    fn the_cache_is_bounded_and_forgets_the_oldest() {
        let (mut cache, now) = (cache(), Instant::now());
        let digest = |i: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&i.to_le_bytes());
            Digest(bytes)
        };
        for i in 0..2 * GENERATION + 1 {
            cache.remember(digest(i), now);
        }
        assert!(!cache.knows(&digest(0), now));
        assert!(cache.knows(&digest(GENERATION), now) && cache.knows(&digest(2 * GENERATION), now));
        assert_eq!(cache.young.len() + cache.old.len(), GENERATION + 1);
        assert!(cache.old.capacity() <= GENERATION);
        assert_eq!(cache.evicted(), GENERATION as u64);
    }

    #[test]
    fn a_time_of_zero_is_off() {
        let (mut cache, now) = (Cache::new(Duration::ZERO).unwrap(), Instant::now());
        let digest = cache.digest(&user("alice"), &stored(&[1; 8], &[2; 32]), b"secret");
        cache.remember(digest, now);
        assert!(!cache.knows(&digest, now) && cache.young.is_empty());
    }
}
