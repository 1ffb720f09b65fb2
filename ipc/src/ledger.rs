//! Shared counters: how many sessions all workers hold, in total and by source address.
//!
//! One region per worker, a memfd made by the monitor: written by its owner alone (the others hold it read-only),
//! cleared by the monitor when its owner dies. A worker that takes a session first writes it into its own region and
//! then adds up all regions: of two workers that take the last place at once, both may step back, never both stay.
//! So limits hold exactly and cost no message. Regions are read with pread(2) and written with pwrite(2), which needs
//! no unsafe code and, within one page, is not torn on tmpfs.
//!
//! Trusts: nobody. A region that lies can only make its readers refuse sessions or, at worst, allow as many as if
//! its owner held none.

use std::{
    io,
    net::IpAddr,
    os::fd::{AsFd, OwnedFd},
};

use rustix::io::{pread, pwrite};

/// Addresses whose bits share a bucket; one read covers it.
const WAYS: usize = 8;
/// Bytes of one entry: key, then count, then padding.
const ENTRY: usize = 16;
const BUCKET: usize = WAYS * ENTRY;
/// The total stands in front, alone in its cache line.
const HEADER: usize = 64;

/// How the regions of one daemon are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Buckets of eight addresses each; a power of two.
    pub buckets: u32,
    /// Odd, drawn at start, so that nobody outside chooses who shares a bucket with whom.
    pub multiplier: u64,
}

impl Shape {
    /// Room for `sessions` different addresses with three quarters of it free.
    pub fn for_sessions(sessions: u32, random: u64) -> Self {
        let buckets = (sessions / 2).clamp(64, 1 << 20).next_power_of_two();
        Shape { buckets, multiplier: random | 1 }
    }

    /// Bytes of one region.
    pub fn bytes(self) -> u64 {
        (HEADER + self.buckets as usize * BUCKET) as u64
    }

    fn offset(self, key: u64) -> u64 {
        let bits = self.buckets.trailing_zeros();
        let bucket = key.wrapping_mul(self.multiplier) >> (64 - bits);
        HEADER as u64 + bucket * BUCKET as u64
    }
}

/// Most sessions at once. 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Over all workers.
    pub total: u32,
    /// Per source address.
    pub per_address: u32,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The total is reached.
    Total,
    /// The address holds as many as it may (or its bucket in the table is full).
    Address,
}

/// The key of a source address: an IPv4 address, or the first 64 bits of an IPv6 one.
pub fn key(source: IpAddr) -> u64 {
    match source.to_canonical() {
        IpAddr::V4(v4) => 0xffff_ffff_0000_0000 | u64::from(v4.to_bits()),
        // ::/64 holds only ::1 as a client; 0 marks a free entry.
        IpAddr::V6(v6) => ((v6.to_bits() >> 64) as u64).max(1),
    }
}

/// A worker's view: its own region and everybody else's.
#[derive(Debug)]
pub struct Ledger {
    shape: Shape,
    own: OwnedFd,
    others: Vec<OwnedFd>,
    held: u32,
}

impl Ledger {
    /// `own` is writable and zeroed; `others` are read-only.
    pub fn new(shape: Shape, own: OwnedFd, others: Vec<OwnedFd>) -> Self {
        Ledger { shape, own, others, held: 0 }
    }

    /// Takes a place for a session from `source`, or says which limit forbids it.
    pub fn take(&mut self, source: IpAddr, limits: Limits) -> io::Result<Result<(), Full>> {
        let key = key(source);
        if !self.add(key, 1)? {
            return Ok(Err(Full::Address));
        }
        let full = self.over(key, limits)?;
        if full.is_some() {
            self.add(key, -1)?;
        }
        Ok(full.map_or(Ok(()), Err))
    }

    /// Gives back the place of a session from `source`.
    pub fn release(&mut self, source: IpAddr) -> io::Result<()> {
        self.add(key(source), -1).map(|_| ())
    }

    fn over(&self, key: u64, limits: Limits) -> io::Result<Option<Full>> {
        if limits.total > 0 {
            let mut total = u64::from(self.held);
            for region in &self.others {
                total += u64::from(read_total(region)?);
            }
            if total > u64::from(limits.total) {
                return Ok(Some(Full::Total));
            }
        }
        if limits.per_address > 0 {
            let mut count = 0;
            for region in self.others.iter().chain([&self.own]) {
                let bucket = read_bucket(region, self.shape.offset(key))?;
                count += u64::from(find(&bucket, key).map_or(0, |entry| entry.count));
            }
            if count > u64::from(limits.per_address) {
                return Ok(Some(Full::Address));
            }
        }
        Ok(None)
    }

    /// Changes own counts by one; false when the bucket has no entry left for this address.
    fn add(&mut self, key: u64, change: i32) -> io::Result<bool> {
        let offset = self.shape.offset(key);
        let bucket = read_bucket(&self.own, offset)?;
        let Some(entry) = find(&bucket, key).or_else(|| free(&bucket)) else { return Ok(false) };
        let count = entry.count.saturating_add_signed(change);
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&key.to_le_bytes());
        bytes[8..12].copy_from_slice(&count.to_le_bytes());
        pwrite(&self.own, &bytes, offset + (entry.way * ENTRY) as u64)?;
        self.held = self.held.saturating_add_signed(change);
        pwrite(&self.own, &self.held.to_le_bytes(), 0)?;
        Ok(true)
    }
}

struct Entry {
    way: usize,
    count: u32,
}

fn entries(bucket: &[u8; BUCKET]) -> impl Iterator<Item = (u64, Entry)> {
    bucket.as_chunks::<ENTRY>().0.iter().enumerate().map(|(way, bytes)| {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        (u64::from(word(0)) | u64::from(word(4)) << 32, Entry { way, count: word(8) })
    })
}

fn find(bucket: &[u8; BUCKET], key: u64) -> Option<Entry> {
    entries(bucket).find(|(k, entry)| *k == key && entry.count > 0).map(|(_, entry)| entry)
}

fn free(bucket: &[u8; BUCKET]) -> Option<Entry> {
    entries(bucket).find(|(_, entry)| entry.count == 0).map(|(_, entry)| entry)
}

fn read_total(region: &OwnedFd) -> io::Result<u32> {
    let mut bytes = [0; 4];
    read_whole(region, &mut bytes, 0)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_bucket(region: &OwnedFd, offset: u64) -> io::Result<[u8; BUCKET]> {
    let mut bytes = [0; BUCKET];
    read_whole(region, &mut bytes, offset)?;
    Ok(bytes)
}

/// A region that its owner has shortened reads as zeros: it can understate, never stop anybody else.
fn read_whole(region: &OwnedFd, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    pread(region.as_fd(), bytes, offset)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn region(shape: Shape) -> OwnedFd {
        let fd = memfd_create("ledger", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, shape.bytes()).unwrap();
        fd
    }

    fn two_workers() -> (Ledger, Ledger, OwnedFd) {
        let shape = Shape::for_sessions(1000, 0x9e37_79b9_7f4a_7c15);
        let (a, b) = (region(shape), region(shape));
        let (for_a, for_b) = (a.try_clone().unwrap(), a.try_clone().unwrap());
        let first = Ledger::new(shape, a, vec![b.try_clone().unwrap()]);
        (first, Ledger::new(shape, b, vec![for_a]), for_b)
    }

    const ANY: Limits = Limits { total: 0, per_address: 0 };
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn the_total_holds_over_both_workers() {
        let (mut a, mut b, _) = two_workers();
        let limits = Limits { total: 3, ..ANY };
        assert_eq!(a.take(HERE, limits).unwrap(), Ok(()));
        assert_eq!(b.take(HERE, limits).unwrap(), Ok(()));
        assert_eq!(a.take(HERE, limits).unwrap(), Ok(()));
        assert_eq!(b.take(HERE, limits).unwrap(), Err(Full::Total));
        a.release(HERE).unwrap();
        assert_eq!(b.take(HERE, limits).unwrap(), Ok(()));
        assert_eq!(a.take(HERE, limits).unwrap(), Err(Full::Total));
    }

    #[test]
    fn an_address_at_its_limit_leaves_room_for_others() {
        let (mut a, mut b, _) = two_workers();
        let limits = Limits { per_address: 1, ..ANY };
        assert_eq!(a.take(HERE, limits).unwrap(), Ok(()));
        assert_eq!(b.take(HERE, limits).unwrap(), Err(Full::Address));
        assert_eq!(b.take([127, 0, 0, 2].into(), limits).unwrap(), Ok(()));
        a.release(HERE).unwrap();
        assert_eq!(b.take(HERE, limits).unwrap(), Ok(()));
    }

    #[test]
    fn a_dead_workers_sessions_are_gone_when_its_region_is_cleared() {
        let (mut a, mut b, region_of_a) = two_workers();
        let limits = Limits { total: 1, ..ANY };
        assert_eq!(a.take(HERE, limits).unwrap(), Ok(()));
        assert_eq!(b.take(HERE, limits).unwrap(), Err(Full::Total));
        ftruncate(&region_of_a, 0).unwrap();
        assert_eq!(b.take(HERE, limits).unwrap(), Ok(()));
    }

    #[test]
    fn thousands_of_addresses_find_a_place_and_leave_none_behind() {
        let (mut a, _b, _) = two_workers();
        let sources: Vec<IpAddr> = (0..1000u32).map(|n| IpAddr::from((0x0a00_0000 + n).to_be_bytes())).collect();
        for source in &sources {
            assert_eq!(a.take(*source, ANY).unwrap(), Ok(()));
        }
        for source in &sources {
            a.release(*source).unwrap();
        }
        assert_eq!(read_total(&a.own).unwrap(), 0);
        assert_eq!(a.take(HERE, Limits { total: 1, per_address: 1 }).unwrap(), Ok(()));
    }

    #[test]
    fn ipv6_clients_of_one_network_share_a_key_and_no_address_has_the_free_one() {
        assert_eq!(key("2001:db8::1".parse().unwrap()), key("2001:db8::ffff:2".parse().unwrap()));
        assert_ne!(key("2001:db8::1".parse().unwrap()), key("2001:db8:0:1::1".parse().unwrap()));
        assert_ne!(key("::1".parse().unwrap()), 0);
        assert_eq!(key("::ffff:127.0.0.1".parse().unwrap()), key(HERE));
    }
}
