//! Resumption (RFC 8446 2.2, RFC 5077): what a client has from one control connection opens data connections of that one
//! alone. Somebody else's ticket does not decrypt, so the handshake goes on without it, and is seen not to be resumed.
//!
//! Ticket keys are drawn at the start, changed every six hours and never leave memory. rustls asks for tickets without a
//! word about whose they are, so that is set before each step of a handshake ([`Tickets::serve`]); handshakes are stepped
//! by the loop alone, never by helper threads.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use rustls::{
    Error,
    crypto::aws_lc_rs::Ticketer,
    server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions},
};

use super::Owner;

/// Sessions kept for clients that know no tickets (TLS 1.2): the newest.
const KEPT: usize = 1024;

/// Tickets of all clients.
#[derive(Debug)]
pub(super) struct Tickets {
    sealed: Arc<dyn ProducesTickets>,
    kept: Arc<ServerSessionMemoryCache>,
    /// Whose handshake is being stepped.
    owner: AtomicU64,
    /// It has offered what is somebody else's.
    foreign: AtomicBool,
}

impl Tickets {
    pub fn new() -> Result<Self, Error> {
        let (sealed, kept) = (Ticketer::new()?, ServerSessionMemoryCache::new(KEPT));
        Ok(Tickets { sealed, kept, owner: AtomicU64::new(0), foreign: AtomicBool::new(false) })
    }

    /// What comes next is about this client.
    pub fn serve(&self, owner: Owner) {
        self.owner.store(owner.0, Ordering::Relaxed);
        self.foreign.store(false, Ordering::Relaxed);
    }

    /// Whether it has offered what is somebody else's since.
    pub fn foreign(&self) -> bool {
        self.foreign.load(Ordering::Relaxed)
    }

    fn mark(&self, plain: &[u8]) -> Vec<u8> {
        [&self.owner.load(Ordering::Relaxed).to_be_bytes(), plain].concat()
    }

    /// What was marked, if it is this client's.
    fn own(&self, marked: Vec<u8>) -> Option<Vec<u8>> {
        let (owner, plain) = marked.split_first_chunk()?;
        let own = u64::from_be_bytes(*owner) == self.owner.load(Ordering::Relaxed);
        self.foreign.fetch_or(!own, Ordering::Relaxed);
        own.then(|| plain.to_vec())
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.sealed.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.sealed.encrypt(&self.mark(plain))
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        // What is not ours to open is from another worker, or from before a restart: somebody else's all the same.
        let Some(marked) = self.sealed.decrypt(ticket) else {
            self.foreign.store(true, Ordering::Relaxed);
            return None;
        };
        self.own(marked)
    }
}

impl StoresServerSessions for Tickets {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.kept.put(key, self.mark(&value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.own(self.kept.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.own(self.kept.take(key)?)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_for_whom_it_was_made_and_as_often_as_wanted() {
        let tickets = Tickets::new().unwrap();
        tickets.serve(Owner(1));
        let ticket = tickets.encrypt(b"secret").unwrap();
        assert!(tickets.put(b"id".to_vec(), b"kept".to_vec()));
        for _ in 0..2 {
            assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"secret"[..]));
            assert_eq!(tickets.get(b"id").as_deref(), Some(&b"kept"[..]));
        }
        tickets.serve(Owner(2));
        assert!(!tickets.foreign());
        assert_eq!(tickets.decrypt(&ticket), None);
        assert_eq!(tickets.get(b"id"), None);
        assert!(tickets.foreign());
        tickets.serve(Owner(1));
        assert_eq!(tickets.decrypt(&Tickets::new().unwrap().encrypt(b"of another worker").unwrap()), None);
        assert!(tickets.foreign());
    }
}
