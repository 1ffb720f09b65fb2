//! How a client has come, and what there is to remember of that: nothing of most.

use std::net::{IpAddr, SocketAddr};

use child_ipc::{
    link::settings::FtpSettings,
    types::{HostName, ListenerId},
};

use super::{Session, secured::Secured};

/// How a client has come.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The client's address.
    pub peer: SocketAddr,
    /// Where it, or its proxy, has connected.
    pub listener: ListenerId,
    /// Where the proxy has connected from, and the address where the client has connected to it, if that is known.
    pub proxied: Option<(SocketAddr, Option<IpAddr>)>,
    /// What is under TLS there.
    pub approach: Approach,
}

/// What is under TLS where a client has connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approach {
    /// Nothing ever.
    Plain,
    /// What it wants, by AUTH.
    Explicit,
    /// Everything from the first byte on.
    Implicit,
}

impl Approach {
    /// Of this listener.
    pub fn at(address: SocketAddr, settings: &FtpSettings) -> Self {
        match &settings.tls {
            Some(tls) if tls.implicit.contains(&address) => Approach::Implicit,
            Some(tls) if !tls.plain.contains(&address) => Approach::Explicit,
            _ => Approach::Plain,
        }
    }
}

/// What there is to remember of few clients.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// Its proxy.
    proxy: Option<IpAddr>,
    /// The address where it has connected to that.
    at: Option<IpAddr>,
    /// The host it has named.
    pub host: Option<HostName>,
    /// When its last login ended.
    pub logged_out: Option<u64>,
    /// TLS of its control connection.
    pub tls: Option<Box<Secured>>,
    /// The monitor may hold a copy of the control connection's descriptor.
    pub copied: bool,
}

impl Rare {
    /// What there is when it comes.
    pub fn of(proxied: Option<(SocketAddr, Option<IpAddr>)>) -> Option<Box<Self>> {
        proxied.map(|(proxy, at)| Box::new(Rare { proxy: Some(proxy.ip().to_canonical()), at, ..Rare::default() }))
    }
}

impl Session {
    /// Its proxy, if it has come by one.
    pub(super) fn proxy(&self) -> Option<IpAddr> {
        self.rare.as_ref().and_then(|rare| rare.proxy)
    }

    /// Since when it could have logged in: it has come, or the login before has ended.
    pub(super) fn nobody_since(&self) -> u64 {
        self.rare.as_ref().and_then(|rare| rare.logged_out).unwrap_or(self.connected)
    }

    /// The address the client is connected to: the proxy's, if there is one that has told it.
    pub(super) fn local(&self) -> Option<IpAddr> {
        if let Some(at) = self.rare.as_ref().and_then(|rare| rare.at) {
            return Some(at);
        }
        let address = rustix::net::getsockname(&self.control).ok()?;
        SocketAddr::try_from(address).ok().map(|address| address.ip().to_canonical())
    }
}
