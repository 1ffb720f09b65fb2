//! The signing thread: signatures of TLS handshakes, for workers that wait for them, and so never behind argon2.
//!
//! It exists before the seal. The loop (serve.rs) gives it links and keys; every worker has a link of its own with it.
//! Reads from: workers (hostile). One that asks for a signature of anything but a TLS handshake, or breaks the contract of its
//! link, is refused, loses its link, and is told of. A worker has one question at a time, so nobody waits for more than one
//! signature of each other worker.
//! Not here: what a pair of files must be (keys.rs), what may be signed (input.rs), how long old keys are good (rings.rs).

pub mod input;
mod rings;

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Barrier,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Instant,
};

use child_ipc::{
    Breach, Channel, RecvError,
    link::worker_keys::{AuthdEnd, FromKeys, Sign, ToKeys},
    types::{Blob, WorkerId},
};
use rings::Rings;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustls::SignatureScheme;

use crate::keys::{self, Keyring};

/// Stack of the thread in bytes; RSA of 8192 bits takes most.
const STACK: usize = 512 << 10;

enum Order {
    Keys(Keyring),
    Add(WorkerId, AuthdEnd),
    Drop(WorkerId),
}

/// The loop's side of the thread.
pub struct Signer {
    orders: Sender<Order>,
    /// Counts up with every order.
    orders_bell: Arc<OwnedFd>,
    breaches: Receiver<(WorkerId, Breach)>,
    /// Counts up with every breach.
    breaches_bell: Arc<OwnedFd>,
}

impl Signer {
    /// Starts the thread, and waits until it needs nothing more than the filter of the sandbox leaves it.
    pub fn start() -> io::Result<Self> {
        // The library opens a device once, which there is none of here, and draws the key of its own generator.
        keys::warm_up().map_err(io::Error::other)?;
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
        let (orders_bell, breaches_bell) = (bell()?, bell()?);
        let (orders, taken) = channel();
        let (breach, breaches) = channel();
        let (hears, rings, started) = (Arc::clone(&orders_bell), Arc::clone(&breaches_bell), Arc::new(Barrier::new(2)));
        let begun = Arc::clone(&started);
        thread::Builder::new().name("sign".to_owned()).stack_size(STACK).spawn(move || {
            // Each thread has a generator of its own. Without one it fails again when it signs, and refuses.
            let _ = keys::warm_up();
            begun.wait();
            Desk { keys: Rings::default(), links: BTreeMap::new(), breach, rings }.serve(&taken, &hears);
        })?;
        started.wait();
        Ok(Signer { orders, orders_bell, breaches, breaches_bell })
    }

    /// These keys replace the ones before. Those stay for a moment: workers may still ask for them.
    pub fn set_keys(&self, keys: Keyring) {
        self.order(Order::Keys(keys));
    }

    /// Serves this worker from now on.
    pub fn add_worker(&self, worker: WorkerId, link: OwnedFd) -> io::Result<()> {
        let mut link = Channel::from_fd(link)?;
        link.set_nonblocking(true);
        self.order(Order::Add(worker, link));
        Ok(())
    }

    /// Serves it no more.
    pub fn drop_worker(&self, worker: WorkerId) {
        self.order(Order::Drop(worker));
    }

    fn order(&self, order: Order) {
        // The thread ends with the process alone; a bell fails only when its count is near 2^64.
        let _ = self.orders.send(order);
        let _ = rustix::io::write(&*self.orders_bell, &1_u64.to_ne_bytes());
    }

    /// Workers that broke the contract since the last call.
    pub fn breaches(&self) -> Vec<(WorkerId, Breach)> {
        silence(&self.breaches_bell);
        self.breaches.try_iter().collect()
    }

    /// Readable when there are breaches.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.breaches_bell.as_fd()
    }
}

fn silence(bell: &OwnedFd) {
    // Fails when it was silent already.
    let _ = rustix::io::read(bell, &mut [0; 8]);
}

/// The thread's own.
struct Desk {
    keys: Rings,
    links: BTreeMap<WorkerId, AuthdEnd>,
    breach: Sender<(WorkerId, Breach)>,
    rings: Arc<OwnedFd>,
}

impl Desk {
    fn serve(mut self, orders: &Receiver<Order>, bell: &OwnedFd) {
        loop {
            let (rung, asking) = self.wait(bell);
            if rung {
                silence(bell);
            }
            self.keys.expire(Instant::now());
            // Orders first, for keys are there before a worker learns of them.
            for order in orders.try_iter() {
                self.obey(order);
            }
            asking.into_iter().for_each(|worker| self.answer(worker));
        }
    }

    /// Waits, no longer than the keys before are good; whether there are orders, and who asks.
    fn wait(&self, bell: &OwnedFd) -> (bool, Vec<WorkerId>) {
        let mut fds = vec![PollFd::new(bell, PollFlags::IN)];
        fds.extend(self.links.values().map(|link| PollFd::new(link, PollFlags::IN)));
        // It fails for want of memory alone; then everybody is asked whether there is something.
        let left = self.keys.due().map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let failed = poll(&mut fds, left.as_ref()).is_err();
        let mut ready = fds.iter().map(|fd| failed || !fd.revents().is_empty());
        let rung = ready.next() == Some(true);
        (rung, self.links.keys().zip(ready).filter(|(_, ready)| *ready).map(|(worker, _)| *worker).collect())
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Keys(new) => self.keys.replace(new, Instant::now()),
            Order::Add(worker, link) => drop(self.links.insert(worker, link)),
            Order::Drop(worker) => drop(self.links.remove(&worker)),
        }
    }

    /// Answers one question of a worker.
    fn answer(&mut self, worker: WorkerId) {
        let Some(link) = self.links.get_mut(&worker) else { return };
        let ended = match link.recv() {
            Ok(received) => {
                let ToKeys::Sign(sign) = received.record;
                let (answer, breach) = match signature(&self.keys, &sign) {
                    Ok(Some(signature)) => (FromKeys::Signed(sign.tag, signature), None),
                    Ok(None) => (FromKeys::Refused(sign.tag), None),
                    Err(breach) => (FromKeys::Refused(sign.tag), Some(breach)),
                };
                let unread = Breach::OutOfPhase("its signatures must be read");
                let sent = link.send(&answer, &[]);
                breach.map_or_else(|| sent.map_err(|_| Some(unread)), |breach| Err(Some(breach)))
            }
            Err(RecvError::WouldBlock) => Ok(()),
            Err(RecvError::Breach(breach)) => Err(Some(breach)),
            // The monitor sees it die, too.
            Err(RecvError::Closed | RecvError::Io(_)) => Err(None),
        };
        let Err(breach) = ended else { return };
        self.links.remove(&worker);
        if let Some(breach) = breach {
            let _ = self.breach.send((worker, breach));
            let _ = rustix::io::write(&*self.rings, &1_u64.to_ne_bytes());
        }
    }
}

/// The signature that is asked for; `None`: there is no such key (any more), or it has no such scheme.
fn signature(keys: &Rings, sign: &Sign) -> Result<Option<Blob<{ child_ipc::link::worker_keys::SIGNATURE }>>, Breach> {
    let input = input::judge(sign.message.as_bytes());
    let input = input.ok_or(Breach::OutOfPhase("signatures are of TLS handshakes alone"))?;
    let scheme = SignatureScheme::from(sign.scheme);
    if !keys::SCHEMES.contains(&scheme) || !input.takes(scheme) {
        return Err(Breach::OutOfPhase("a signature scheme of TLS, and of its version"));
    }
    let signer = keys.get(&sign.key).and_then(|key| key.choose_scheme(&[scheme]));
    let signed = signer.and_then(|signer| signer.sign(sign.message.as_bytes()).ok());
    Ok(signed.and_then(|bytes| Blob::new(&bytes).ok()))
}
