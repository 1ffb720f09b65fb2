//! The keys of now, and for a moment those before: a handshake that has begun with the old certificate gets the old key's
//! signature.
//!
//! Told the time, so that its end can be tested without waiting.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use child_ipc::link::worker_keys::KeyName;
use rustls::sign::SigningKey;

use crate::keys::Keyring;

/// How long the keys before are good: a handshake takes ten seconds at most (worker/src/session/secured.rs), and a worker may
/// have been held up before it takes the new certificates.
pub const OVERLAP: Duration = Duration::from_secs(30);

/// Keys by time.
#[derive(Default)]
pub struct Rings {
    now: Keyring,
    /// And until when.
    before: Option<(Keyring, Instant)>,
}

impl Rings {
    /// These keys replace the ones that are there.
    pub fn replace(&mut self, keys: Keyring, now: Instant) {
        let before = std::mem::replace(&mut self.now, keys);
        self.before = (!before.is_empty()).then(|| (before, now + OVERLAP));
    }

    /// When the keys before are to be let go, if there are any.
    pub fn due(&self) -> Option<Instant> {
        self.before.as_ref().map(|(_, until)| *until)
    }

    /// Lets go of the keys before when their time is over; the library wipes them.
    pub fn expire(&mut self, now: Instant) {
        self.before.take_if(|(_, until)| *until <= now);
    }

    /// The key of this name.
    pub fn get(&self, name: &KeyName) -> Option<&Arc<dyn SigningKey>> {
        self.now.get(name).or_else(|| self.before.as_ref()?.0.get(name))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::KeyPair;
    use rustls::{crypto::aws_lc_rs, pki_types::PrivateKeyDer};

    use super::*;

    fn ring(name: u8) -> Keyring {
        let key = PrivateKeyDer::Pkcs8(KeyPair::generate().unwrap().serialize_der().into());
        [(KeyName([name; 32]), aws_lc_rs::sign::any_supported_type(&key).unwrap())].into()
    }

    #[test]
    fn the_keys_before_are_good_for_half_a_minute_and_then_gone() {
        let (mut rings, start) = (Rings::default(), Instant::now());
        let has = |rings: &Rings, name| rings.get(&KeyName([name; 32])).is_some();
        rings.replace(ring(1), start);
        assert_eq!(rings.due(), None);
        rings.replace(ring(2), start);
        let due = rings.due().unwrap();
        assert_eq!(due, start + OVERLAP);
        rings.expire(due - Duration::from_millis(1));
        assert!(has(&rings, 1) && has(&rings, 2));
        rings.expire(due);
        assert!(!has(&rings, 1) && has(&rings, 2));
        assert_eq!(rings.due(), None);
        // The time of each begins when it is replaced.
        rings.replace(ring(3), due);
        rings.replace(Keyring::new(), due + OVERLAP);
        assert!(!has(&rings, 2) && has(&rings, 3));
        assert_eq!(rings.due(), Some(due + 2 * OVERLAP));
    }
}
