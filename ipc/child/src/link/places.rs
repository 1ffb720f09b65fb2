//! Settings of workers that depend on where a client comes from or arrives.
//!
//! caisson-config packs them, workers unpack them, and the monitor hands them on unread, as part of
//! [`FtpSettings`](super::settings::FtpSettings).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::settings::{Require, Resumption};
use crate::call::Record;
use crate::types::{Blob, HostName, Network};

/// Longest packed form in bytes.
pub const MOST: usize = 16_384;

/// All of them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Listeners for proxies alone.
    pub doors: Vec<Door>,
    /// What 227 tells clients, by their networks; the first that has the client counts.
    pub passive: Vec<Passive>,
    /// What they may not do without TLS, and how their data connections are secured: the longest network that has the client
    /// counts.
    pub networks: Vec<OfNetwork>,
    /// What HOST may name; if there is none, any name leads to the same place.
    pub hosts: Vec<Host>,
}

/// A listener with `proxies`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who may connect there, and must say on whose behalf.
    pub proxies: Vec<Network>,
}

/// A `[[passive]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passive {
    /// For whom.
    pub clients: Vec<Network>,
    /// What they are told; `None`: the address they have connected to.
    pub address: Option<Ipv4Addr>,
}

/// A `[[network]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfNetwork {
    /// Whose. No network is in two of them.
    pub clients: Vec<Network>,
    /// `tls_required`; `None`: as for others.
    pub require: Option<Require>,
    /// `data_resumption`; `None`: as for others.
    pub resumption: Option<Resumption>,
}

/// A `[[host]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// How clients call it.
    pub name: HostName,
    /// Its greeting; `None`: the one all clients have had.
    pub banner: Option<Blob<1024>>,
}

impl Door {
    /// Whether a proxy has this address.
    pub fn admits(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(address))
    }
}

impl Places {
    /// Whether they are no longer than [`MOST`].
    pub fn fit(&self) -> bool {
        super::settings::pack::<_, MOST>(self).is_some()
    }

    /// The address that 227 tells this client instead of the one it has connected to; `others`: for clients of no network.
    pub fn passive_address(&self, client: IpAddr, others: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        let found = self.passive.iter().find(|one| one.clients.iter().any(|network| network.contains(client)));
        found.map_or(others, |found| found.address)
    }

    /// What the longest network says that has this client and says anything of it.
    pub fn of_client<V>(&self, client: IpAddr, said: impl Fn(&OfNetwork) -> Option<V>) -> Option<V> {
        let longest = |of: &OfNetwork| {
            of.clients.iter().filter(|network| network.contains(client)).map(|network| network.prefix()).max()
        };
        let found = self.networks.iter().filter_map(|of| Some((longest(of)?, said(of)?)));
        found.max_by_key(|(prefix, _)| *prefix).map(|(_, said)| said)
    }

    /// The host of this name.
    pub fn host(&self, name: &HostName) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == *name)
    }

    /// The listener at this address, if it is for proxies alone.
    pub fn door(&self, address: SocketAddr) -> Option<&Door> {
        self.doors.iter().find(|door| door.address == address)
    }
}

impl Record for Places {
    const CAP: usize = MOST;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(proxies: usize) -> Door {
        Door { address: ([192, 0, 2, 1], 21).into(), proxies: vec!["10.0.0.0/8".parse().unwrap(); proxies] }
    }

    #[test]
    fn the_first_network_that_has_the_client_counts() {
        let passive = |network: &str, address: Option<[u8; 4]>| Passive {
            clients: vec!["2001:db8::/32".parse().unwrap(), network.parse().unwrap()],
            address: address.map(Ipv4Addr::from),
        };
        let passive = vec![passive("10.1.0.0/16", None), passive("10.0.0.0/8", Some([10, 0, 0, 5]))];
        let places = Places { passive, ..Places::default() };
        let others = Some(Ipv4Addr::new(203, 0, 113, 7));
        let told = |client: [u8; 4]| places.passive_address(client.into(), others);
        assert_eq!(told([10, 1, 2, 3]), None);
        assert_eq!(told([10, 2, 2, 3]), Some(Ipv4Addr::new(10, 0, 0, 5)));
        assert_eq!(told([192, 0, 2, 3]), others);
    }

    #[test]
    fn the_longest_network_that_says_something_counts_wherever_it_stands() {
        let of = |clients: &[&str], require, resumption| OfNetwork {
            clients: clients.iter().map(|network| network.parse().unwrap()).collect(),
            require,
            resumption,
        };
        let networks = vec![
            of(&["10.1.0.0/16", "2001:db8::/32"], Some(Require::Data), None),
            of(&["10.1.1.1"], None, Some(Resumption::Off)),
            of(&["0.0.0.0/0", "10.1.1.0/24"], Some(Require::Login), None),
            of(&["10.0.0.0/8"], Some(Require::No), Some(Resumption::Required)),
        ];
        let places = Places { networks, ..Places::default() };
        let require = |client: &str| places.of_client(client.parse().unwrap(), |of| of.require);
        let resumption = |client: &str| places.of_client(client.parse().unwrap(), |of| of.resumption);
        assert_eq!(require("192.0.2.1"), Some(Require::Login));
        assert_eq!(require("10.2.0.1"), Some(Require::No));
        assert_eq!(require("10.1.2.1"), Some(Require::Data));
        assert_eq!(require("::ffff:10.1.2.1"), Some(Require::Data));
        assert_eq!((require("10.1.1.1"), resumption("10.1.1.1")), (Some(Require::Login), Some(Resumption::Off)));
        assert_eq!((require("2001:db8::1"), require("2001:db9::1")), (Some(Require::Data), None));
        assert_eq!((resumption("10.1.2.1"), resumption("192.0.2.1")), (Some(Resumption::Required), None));
    }

    #[test]
    fn more_than_fits_is_told() {
        assert!(Places { doors: vec![door(2)], ..Places::default() }.fit());
        assert!(!Places { doors: vec![door(MOST / 6)], ..Places::default() }.fit());
    }
}
