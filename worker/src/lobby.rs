//! Connections from proxies, until they have said on whose behalf they come (proxy.rs).
//!
//! Reads from: whoever connects from an address of `proxies` (hostile). A header is looked at where it lies, in the
//! socket, and taken out when it is whole: what is behind it stays there for the session, and nothing is kept here.
//! Not here: what becomes of those who have said it (event.rs).

use std::{
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
};

use child_ipc::link::monitor_worker::Listener;
use mio::Interest;
use rustix::{
    io::{Errno, retry_on_intr},
    net::{RecvFlags, recv},
};
use slab::Slab;

use crate::{
    hub::{Hub, Source},
    proxy::{self, Header},
    session::{Approach, Arrival},
};

/// How long a header is waited for, milliseconds, if `login_timeout_secs` is not shorter.
const PATIENCE_MS: u64 = 10_000;
/// Most that wait at once, if `max_sessions` is not less: they are no clients yet, and not counted as such (ledger.rs).
const MOST: usize = 1024;

#[derive(Debug)]
struct Waiting {
    fd: OwnedFd,
    proxy: SocketAddr,
    listener: Listener,
    until: u64,
}

/// Everybody who waits.
#[derive(Debug, Default)]
pub struct Lobby {
    waiting: Slab<Waiting>,
}

/// What a look at a connection has brought.
#[derive(Debug)]
pub enum Heard {
    /// The header is not whole yet.
    Nothing,
    /// The client is known.
    Client(OwnedFd, Arrival),
    /// The connection is closed: whose, and why.
    Closed(SocketAddr, &'static str),
}

impl Lobby {
    /// A proxy has connected; false when there is no room for it.
    pub fn enter(&mut self, fd: OwnedFd, proxy: SocketAddr, listener: Listener, hub: &mut Hub) -> bool {
        if self.waiting.len() >= usize::try_from(hub.settings.max_sessions).unwrap_or(MOST).min(MOST) {
            return false;
        }
        let login = u64::from(hub.settings.login_timeout_secs) * 1000;
        let until = hub.now + if login == 0 { PATIENCE_MS } else { login.min(PATIENCE_MS) };
        let entry = self.waiting.vacant_entry();
        // Edge-triggered: told again whenever more bytes have come, though none is taken out.
        if hub.watch(fd.as_fd(), Source::Lobby(entry.key()), Interest::READABLE, false).is_ok() {
            entry.insert(Waiting { fd, proxy, listener, until });
            hub.due_at(until);
        }
        true
    }

    /// Something has come; `ended`: nothing will come behind it.
    pub fn hear(&mut self, place: usize, ended: bool, hub: &Hub) -> Heard {
        let Some(waiting) = self.waiting.get(place) else { return Heard::Nothing };
        let mut bytes = [0; proxy::LONGEST];
        let seen = match retry_on_intr(|| recv(&waiting.fd, &mut bytes, RecvFlags::PEEK)) {
            Ok((_, seen)) => bytes.get(..seen).unwrap_or_default(),
            Err(Errno::AGAIN) if !ended => return Heard::Nothing,
            Err(_) => &[],
        };
        let (length, ends) = match proxy::parse(seen) {
            Header::Part if ended || seen.is_empty() => {
                return Heard::Closed(self.waiting.remove(place).proxy, "closed before its PROXY header");
            }
            Header::Part => return Heard::Nothing,
            Header::Whole { length, ends } => (length, ends),
            Header::Wrong(why) => return Heard::Closed(self.waiting.remove(place).proxy, why),
        };
        let Waiting { fd, proxy, listener, .. } = self.waiting.remove(place);
        let header = bytes.get_mut(..length).unwrap_or_default();
        let taken = retry_on_intr(|| recv(&fd, &mut *header, RecvFlags::empty()));
        if !matches!(taken, Ok((_, got)) if got == length) {
            return Heard::Closed(proxy, "PROXY header not as it was");
        }
        hub.unwatch(fd.as_fd());
        // A reload may have struck it off the list meanwhile.
        if !hub.settings.places.door(listener.address).is_some_and(|door| door.admits(proxy.ip())) {
            return Heard::Closed(proxy, "not one of proxies");
        }
        let peer = ends.map_or(proxy, |ends| ends.source);
        let approach = Approach::at(listener.address, &hub.settings);
        let at = ends.map(|ends| ends.destination.ip());
        Heard::Client(fd, Arrival { peer, listener: listener.id, proxied: Some((proxy, at)), approach })
    }

    /// Closes those who have had their time; whose, and when the next one has.
    pub fn expire(&mut self, now: u64) -> (Vec<SocketAddr>, Option<u64>) {
        let mut late = Vec::new();
        self.waiting.retain(|_, waiting| {
            let stays = waiting.until > now;
            late.extend((!stays).then_some(waiting.proxy));
            stays
        });
        (late, self.waiting.iter().map(|(_, waiting)| waiting.until).min())
    }
}
