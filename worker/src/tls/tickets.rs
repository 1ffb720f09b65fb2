//! Resumption (RFC 8446 2.2, RFC 5077): what a client has from one control connection opens data connections of that one
//! alone. Somebody else's ticket does not decrypt, so the handshake goes on without it, and is seen not to be resumed.
//!
//! Ticket keys are drawn at the start, changed every six hours and never leave memory. rustls asks for tickets without a
//! word about whose they are, so that is set before each step of a handshake ([`Tickets::serve`]); handshakes are stepped
//! by the loop alone, never by helper threads. For the same reason it is here that a stranger gets no signature
//! ([`Guarded`]): whether a ticket was good is known when rustls asks for one, and to nobody who could say no before.
//!
//! A client that knows no tickets (TLS 1.2) has the session id of its control connection, which is kept as long as that lives
//! and cannot be pushed out by anybody.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use child_ipc::link::settings::Resumption;
use rustls::{
    SignatureAlgorithm, SignatureScheme,
    server::{ClientHello, ProducesTickets, ResolvesServerCert, StoresServerSessions},
    sign::{CertifiedKey, Signer, SigningKey},
};

use super::Owner;

/// The name of a ticket's key stands in front of it (RFC 5077 4).
const KEY_NAME: usize = 16;
/// Names of keys that are remembered: at four a day, those of the seven days that a ticket may live (RFC 8446 4.6.1).
const KEY_NAMES: usize = 30;
/// The longest session that is kept for its id, bytes; a client's certificates are in it.
const LONGEST: usize = 16 << 10;

/// Tickets of all clients.
#[derive(Debug)]
pub(super) struct Tickets {
    sealed: Arc<dyn ProducesTickets>,
    /// Of the keys that have sealed any, the last one first.
    names: Mutex<VecDeque<[u8; KEY_NAME]>>,
    /// By control connections that live.
    kept: Mutex<HashMap<u64, Kept>>,
    /// Whose handshake is being stepped.
    owner: AtomicU64,
    /// It has offered what is somebody else's.
    foreign: AtomicBool,
}

/// What a client without tickets resumes.
#[derive(Debug)]
struct Kept {
    id: Vec<u8>,
    session: Vec<u8>,
}

impl Tickets {
    /// With what seals tickets under keys of its own.
    pub fn new(sealed: Arc<dyn ProducesTickets>) -> Self {
        let (names, kept, owner, foreign) = Default::default();
        Tickets { sealed, names, kept, owner, foreign }
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

    /// The session of a client is kept until what is given back is dropped.
    pub fn keep(self: &Arc<Self>, owner: Owner) -> Keep {
        Keep { tickets: Arc::clone(self), owner }
    }

    fn owner(&self) -> u64 {
        self.owner.load(Ordering::Relaxed)
    }

    fn offers_foreign(&self) {
        self.foreign.store(true, Ordering::Relaxed);
    }

    /// Whether this worker has sealed something with the key that a ticket names. Anybody may write such a name; who does
    /// is taken for a client without a ticket, which everybody can be.
    fn is_named(&self, ticket: &[u8]) -> bool {
        ticket.first_chunk().is_some_and(|name| lock(&self.names).contains(name))
    }

    /// Remembers the key that a ticket names.
    fn remember(&self, ticket: &[u8]) {
        let (Some(&name), mut names) = (ticket.first_chunk(), lock(&self.names)) else { return };
        if names.front() != Some(&name) {
            names.truncate(KEY_NAMES - 1);
            names.push_front(name);
        }
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
        let ticket = self.sealed.encrypt(&[&self.owner().to_be_bytes(), plain].concat())?;
        self.remember(&ticket);
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let Some(marked) = self.sealed.decrypt(ticket) else {
            // Under a key of ours that is no more it was just kept too long. Any other is from another worker, or from before a
            // restart: somebody else's all the same.
            if !self.is_named(ticket) {
                self.offers_foreign();
            }
            return None;
        };
        let (owner, plain) = marked.split_first_chunk()?;
        if u64::from_be_bytes(*owner) != self.owner() {
            self.offers_foreign();
            return None;
        }
        Some(plain.to_vec())
    }
}

/// Of control connections.
impl StoresServerSessions for Tickets {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        let fits = session.len() <= LONGEST;
        if fits {
            lock(&self.kept).insert(self.owner(), Kept { id, session });
        }
        fits
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let kept = lock(&self.kept);
        if let Some(own) = kept.get(&self.owner()).filter(|own| own.id == id) {
            return Some(own.session.clone());
        }
        if kept.values().any(|other| other.id == id) {
            self.offers_foreign();
        }
        None
    }

    fn take(&self, _: &[u8]) -> Option<Vec<u8>> {
        // For servers without tickets.
        None
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Keeps the session of a client, as long as it is there.
#[derive(Debug)]
pub(super) struct Keep {
    tickets: Arc<Tickets>,
    owner: Owner,
}

impl Drop for Keep {
    fn drop(&mut self) {
        lock(&self.tickets.kept).remove(&self.owner.0);
    }
}

/// Of data connections: they resume what control connections have put there, and put nothing there.
#[derive(Debug)]
pub(super) struct Resumed(pub Arc<Tickets>);

impl StoresServerSessions for Resumed {
    fn put(&self, _: Vec<u8>, _: Vec<u8>) -> bool {
        false
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.0.get(id)
    }

    fn take(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn can_cache(&self) -> bool {
        false
    }
}

/// Certificates of data connections: keys that sign for nobody who is to be refused. Only a handshake that resumes nothing asks
/// for a signature.
#[derive(Debug)]
pub(super) struct Guarded {
    pub certificates: Arc<dyn ResolvesServerCert>,
    pub tickets: Arc<Tickets>,
    pub resumption: Resumption,
}

impl ResolvesServerCert for Guarded {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let found = self.certificates.resolve(hello)?;
        let (key, tickets) = (Arc::clone(&found.key), Arc::clone(&self.tickets));
        let key = Arc::new(GuardedKey { key, tickets, resumption: self.resumption });
        Some(Arc::new(CertifiedKey { cert: found.cert.clone(), key, ocsp: found.ocsp.clone() }))
    }
}

#[derive(Debug)]
struct GuardedKey {
    key: Arc<dyn SigningKey>,
    tickets: Arc<Tickets>,
    resumption: Resumption,
}

impl SigningKey for GuardedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        refusal(self.resumption, false, self.tickets.foreign()).is_none().then(|| self.key.choose_scheme(offered))?
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

/// Why a data connection is refused that resumes its control connection or not, and was offered something foreign or not.
pub(super) fn refusal(resumption: Resumption, resumed: bool, foreign: bool) -> Option<&'static str> {
    match resumption {
        Resumption::IfOffered if foreign && !resumed => {
            Some("it resumes the TLS session of another control connection")
        }
        Resumption::Required if !resumed => Some("it does not resume the TLS session of the control connection"),
        Resumption::Required | Resumption::IfOffered | Resumption::Off => None,
    }
}

/// Nothing panics while it holds the lock (and a panic ends the process).
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rustls::crypto::aws_lc_rs::Ticketer;

    use super::*;
    use crate::tls::tests::Keys;

    fn tickets() -> Tickets {
        Tickets::new(Ticketer::new().unwrap())
    }

    #[test]
    fn a_ticket_is_good_for_whom_it_was_made_and_as_often_as_wanted() {
        let (tickets, other) = (Arc::new(tickets()), tickets());
        let keep = tickets.keep(Owner(1));
        tickets.serve(Owner(1));
        let ticket = tickets.encrypt(b"secret").unwrap();
        assert!(tickets.put(b"id".to_vec(), b"kept".to_vec()));
        for _ in 0..2 {
            assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"secret"[..]));
            assert_eq!(tickets.get(b"id").as_deref(), Some(&b"kept"[..]));
        }
        for offered in [&|| tickets.decrypt(&ticket), &|| tickets.get(b"id")] as [&dyn Fn() -> Option<Vec<u8>>; 2] {
            tickets.serve(Owner(2));
            assert!(!tickets.foreign());
            assert_eq!(offered(), None);
            assert!(tickets.foreign());
        }
        tickets.serve(Owner(1));
        assert_eq!(tickets.decrypt(&other.encrypt(b"of another worker").unwrap()), None);
        assert!(tickets.foreign());
        drop(keep);
        tickets.serve(Owner(1));
        assert_eq!((tickets.get(b"id"), tickets.foreign()), (None, false));
    }

    #[test]
    fn a_ticket_whose_key_is_no_more_counts_as_none_for_a_week() {
        let keys = Arc::new(Keys::new());
        let tickets = Tickets::new(keys.clone());
        tickets.serve(Owner(1));
        let mut old = Vec::new();
        for _ in 0..=KEY_NAMES {
            old.push(tickets.encrypt(b"secret").unwrap());
            keys.change();
        }
        for (age, ticket) in old.iter().rev().enumerate() {
            tickets.serve(Owner(1));
            assert_eq!(tickets.decrypt(ticket), None);
            assert_eq!(tickets.foreign(), age >= KEY_NAMES, "{age}");
        }
        assert_eq!(lock(&tickets.names).len(), KEY_NAMES);
    }

    #[test]
    fn however_many_clients_come_the_sessions_of_those_that_stay_are_kept() {
        let tickets = Arc::new(tickets());
        let _stays = tickets.keep(Owner(0));
        tickets.serve(Owner(0));
        assert!(tickets.put(b"stays".to_vec(), b"kept".to_vec()));
        for number in 1..5000 {
            let _keep = tickets.keep(Owner(number));
            tickets.serve(Owner(number));
            for turn in [1_u64, 2, 3] {
                assert!(tickets.put([number, turn].map(u64::to_be_bytes).concat(), vec![0; 100]));
            }
            assert!(!tickets.put(b"long".to_vec(), vec![0; LONGEST + 1]));
        }
        tickets.serve(Owner(0));
        assert_eq!(tickets.get(b"stays").as_deref(), Some(&b"kept"[..]));
        assert_eq!(lock(&tickets.kept).len(), 1);
    }
}
