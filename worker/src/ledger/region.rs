//! What stands where in a region of the ledger, and reading it.
//!
//! Reads from: other workers' regions (hostile: every bit pattern is a number) and our own. Not here: who writes what when (ledger.rs).
//!
//! A region: the connections held and the tag of a claim, 32 bits each, in the first place; then places of 32 bytes, each an address
//! (16 bytes) and the connections it holds (4 bytes). An address is in one of the [`WINDOW`] places from the one its hash names on.
//! A word of at most 8 bytes is aligned, so the kernel copies it whole; of an address, all 16 are written before it counts.

use std::{net::IpAddr, os::fd::OwnedFd};

use rustix::io::pread;

use super::Full;

/// Bytes of a place.
pub const PLACE: usize = 32;
/// Places in which an address may be.
pub const WINDOW: usize = 16;

/// The places in which an address may be.
pub struct Window([u8; WINDOW * PLACE]);

impl Window {
    /// Reads one that begins at this byte.
    pub fn read(region: &OwnedFd, at: u64) -> Result<Self, Full> {
        let mut bytes = [0; WINDOW * PLACE];
        pread(region, &mut bytes, at)?;
        Ok(Window(bytes))
    }

    /// Every place: address and connections.
    fn places(&self) -> impl Iterator<Item = (u128, u32)> {
        self.0.as_chunks::<PLACE>().0.iter().filter_map(|place| {
            let (key, rest) = place.split_first_chunk()?;
            Some((u128::from_le_bytes(*key), u32::from_le_bytes(*rest.first_chunk()?)))
        })
    }

    /// The place of an address that has connections, by its number in the window, and how many.
    pub fn find(&self, key: u128) -> Option<(usize, u32)> {
        self.places()
            .enumerate()
            .find(|(_, (k, count))| *k == key && *count > 0)
            .map(|(number, (_, count))| (number, count))
    }

    /// A free place.
    pub fn free(&self) -> Option<(usize, u32)> {
        self.places().position(|(_, count)| count == 0).map(|number| (number, 0))
    }
}

/// What a worker holds, and the tag of its claim; 0 is no claim.
pub fn read_header(region: &OwnedFd) -> Result<(u32, u32), Full> {
    let mut bytes = [0; 8];
    pread(region, &mut bytes, 0)?;
    let word = u64::from_le_bytes(bytes);
    Ok((word as u32, (word >> 32) as u32))
}

/// The bits of an address that count: an IPv4 address stands for itself, however it is spelled.
pub fn prefix(address: IpAddr, (ipv4, ipv6): (u32, u32)) -> u128 {
    let (bits, length) = match address.to_canonical() {
        IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), ipv4),
        IpAddr::V6(address) => (address.to_bits(), ipv6),
    };
    bits & u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0)
}
