//! Settings of workers that depend on where a client comes from or arrives.
//!
//! caisson-config packs them, workers unpack them, and the monitor hands them on unread, as part of
//! [`FtpSettings`](super::settings::FtpSettings).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

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
    fn more_than_fits_is_told() {
        assert!(Places { doors: vec![door(2)], ..Places::default() }.fit());
        assert!(!Places { doors: vec![door(MOST / 6)], ..Places::default() }.fit());
    }
}
