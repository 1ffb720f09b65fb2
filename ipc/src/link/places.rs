//! Settings of workers that depend on where a client comes from or arrives.
//!
//! caisson-config packs them, workers unpack them, and the monitor hands them on unread, as part of
//! [`FtpSettings`](super::monitor_worker::FtpSettings).

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::call::{NONE, Record};
use crate::types::{Blob, Network};
use crate::wire::{self, Breach};

/// Longest packed form in bytes.
pub const MOST: usize = 16_384;

/// All of them. Packed, none is no byte.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Listeners for proxies alone.
    pub doors: Vec<Door>,
}

/// A listener with `proxies`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who may connect there, and must say on whose behalf.
    pub proxies: Vec<Network>,
}

impl Door {
    /// Whether a proxy has this address.
    pub fn admits(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(address))
    }
}

impl Places {
    /// For [`FtpSettings`](super::monitor_worker::FtpSettings); `None` when it is longer than [`MOST`].
    pub fn pack(&self) -> Option<Blob<MOST>> {
        if *self == Places::default() {
            return Some(Blob::default());
        }
        let mut buffer = vec![0; MOST];
        wire::encode(self, &mut buffer).and_then(|bytes| Blob::new(bytes).ok())
    }

    /// Back from it.
    ///
    /// # Errors
    /// When it has not been packed by this build.
    pub fn unpack(packed: &Blob<MOST>) -> Result<Self, Breach> {
        if packed.is_empty() { Ok(Places::default()) } else { wire::decode(packed.as_bytes()) }
    }

    /// The listener at this address, if it is for proxies alone.
    pub fn door(&self, address: SocketAddr) -> Option<&Door> {
        self.doors.iter().find(|door| door.address == address)
    }
}

impl Record for Places {
    const CAP: usize = MOST;
    fn descriptors(&self) -> RangeInclusive<usize> {
        NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(proxies: usize) -> Door {
        Door { address: ([192, 0, 2, 1], 21).into(), proxies: vec!["10.0.0.0/8".parse().unwrap(); proxies] }
    }

    #[test]
    fn what_is_packed_is_unpacked_and_nothing_else_is() {
        let places = Places { doors: vec![door(2)] };
        let packed = places.pack().unwrap();
        assert_eq!(Places::unpack(&packed), Ok(places));
        assert_eq!(Places::unpack(&Blob::default()), Ok(Places::default()));
        assert_eq!(Places::unpack(&Blob::cut(&[packed.as_bytes(), b"x"].concat())), Err(Breach::LeftOver(1)));
        assert_eq!(Places::unpack(&Blob::cut(&packed.as_bytes()[1..])).is_err(), true);
    }

    #[test]
    fn more_than_fits_is_told() {
        assert!(Places { doors: vec![door(MOST / 6)] }.pack().is_none());
    }
}
