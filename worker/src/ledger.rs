//! Limits that hold over all workers: how many connections there are, in all and by address (caisson.toml(5) `max_sessions`,
//! `max_sessions_per_address`).
//!
//! Each worker has a region of memory, a sealed memfd from the monitor: it writes its own and reads the others'; the monitor clears a
//! dead worker's. It counts there the connections it holds, and **claims** a place for a new one before it looks whether there is
//! one. Of two workers that claim the last place at once, at least one sees the other's claim: then the one with the lower slot
//! goes on, and the other steps back and looks again. So a limit is never exceeded, and the last place is given away; it costs no
//! message, but a read from each other worker.
//!
//! Trusts: nobody. What another region says are numbers: a region that lies can make this worker refuse clients, or let in as many as
//! if its owner held none; never more than the limit on this worker alone. What stands where in a region: ledger/region.rs.

use std::{
    collections::hash_map::DefaultHasher,
    fmt,
    hash::{Hash, Hasher},
    io,
    net::IpAddr,
    os::fd::OwnedFd,
    sync::atomic::{Ordering, fence},
    thread,
};

use child_ipc::link::settings::FtpSettings;
use rustix::{fs::fstat, io::pwrite};

use region::{PLACE, WINDOW, Window, prefix, read_header};

mod region;

/// How often a claim that another one stands in the way of is looked at again: the other worker is between two system calls,
/// or a liar.
const TRIES: usize = 64;

/// Why there is no room for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// `max_sessions` is reached.
    Total,
    /// `max_sessions_per_address` is reached.
    Address,
    /// So many addresses are counted that this one finds no place.
    Table,
    /// Memory for counting is not to be had; errno.
    Fault(i32),
}

impl fmt::Display for Full {
    /// For the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Full::Total => f.write_str("max_sessions"),
            Full::Address => f.write_str("max_sessions_per_address"),
            Full::Table => f.write_str(
                "max_sessions_per_address: no place to count the address; restart after raising max_sessions",
            ),
            Full::Fault(errno) => write!(f, "no memory to count connections: errno {errno}"),
        }
    }
}

impl From<rustix::io::Errno> for Full {
    fn from(errno: rustix::io::Errno) -> Self {
        Full::Fault(errno.raw_os_error())
    }
}

/// What is counted, and up to where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    total: u64,
    /// 0 is off, and nothing is counted by address.
    per_address: u64,
    /// Bits of an address, as it is mapped into IPv6, that count.
    prefixes: (u32, u32),
}

impl Limits {
    fn of(settings: &FtpSettings) -> Self {
        Limits {
            total: settings.max_sessions.into(),
            per_address: settings.max_sessions_per_address.into(),
            prefixes: (96 + u32::from(settings.address_prefixes.0), settings.address_prefixes.1.into()),
        }
    }

    /// Whether connections are counted alike.
    fn counts_as(&self, other: &Self) -> bool {
        (self.per_address > 0, self.prefixes) == (other.per_address > 0, other.prefixes)
    }
}

/// An address as it is counted.
#[derive(Debug, Clone, Copy)]
struct Spot {
    key: u128,
    /// Where its window begins, in bytes.
    at: u64,
}

/// A new connection's place in our own table.
#[derive(Debug, Clone, Copy)]
struct Place {
    key: u128,
    at: u64,
    count: u32,
}

/// What a look at all regions tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Room,
    Full(Full),
    /// There is room for us, or for others that claim it; whether one of them has a lower slot.
    Contested(Full, bool),
}

/// A worker's view of all.
#[derive(Debug)]
pub struct Ledger {
    own: OwnedFd,
    /// The other workers' regions, by slot.
    others: Vec<OwnedFd>,
    /// So many of these have a lower slot.
    lower: usize,
    hash_key: u64,
    /// Windows begin at so many different places.
    starts: u64,
    held: u32,
    limits: Limits,
}

impl Ledger {
    /// A worker's own region, empty, and the others' before and behind it in the order that holds for all workers.
    ///
    /// # Errors
    /// Not a region.
    pub fn new(own: OwnedFd, others: [Vec<OwnedFd>; 2], hash_key: u64, settings: &FtpSettings) -> io::Result<Self> {
        let bytes = usize::try_from(fstat(&own)?.st_size).unwrap_or(0);
        let starts = (bytes / PLACE).checked_sub(1 + WINDOW).filter(|starts| *starts > 0);
        let starts = starts.ok_or_else(|| io::Error::other(format!("a region of {bytes} bytes")))? as u64;
        let limits = Limits::of(settings);
        let lower = others[0].len();
        Ok(Ledger { own, others: others.into_iter().flatten().collect(), lower, hash_key, starts, held: 0, limits })
    }

    /// New limits. `held` are the addresses of the connections there are: those are counted anew if they count otherwise now.
    pub fn obey(&mut self, settings: &FtpSettings, held: impl Iterator<Item = IpAddr> + Clone) {
        let new = Limits::of(settings);
        let anew = !new.counts_as(&self.limits);
        if anew {
            held.clone().for_each(|address| self.uncount(address));
        }
        self.limits = new;
        if anew {
            // One that finds no place is not counted.
            held.for_each(|address| {
                let _ = self.count(address);
            });
        }
    }

    /// Takes a place for a connection from `address`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn take(&mut self, address: IpAddr) -> Result<(), Full> {
        let taken = self.compete(address);
        if taken.is_err() {
            self.write_header(0)?;
        }
        taken
    }

    /// By how many connections we hold more than the worker that holds fewest; a region that cannot be read says nothing.
    pub fn lead(&self) -> u32 {
        let held = |region| read_header(region).map_or(self.held, |(held, _)| held);
        self.held.saturating_sub(self.others.iter().map(held).min().unwrap_or(self.held))
    }

    /// Gives back the place of a connection from `address`.
    pub fn release(&mut self, address: IpAddr) {
        self.uncount(address);
        self.held = self.held.saturating_sub(1);
        // The page is there, so this does not fail.
        let _ = self.write_header(0);
    }

    /// Claims a place until it is ours, or there is none. A claim that failed is left standing.
    fn compete(&mut self, address: IpAddr) -> Result<(), Full> {
        let spot = self.spot(address);
        let place = spot.map(|spot| self.place(spot)).transpose()?;
        let tag = spot.map_or(1, |spot| spot.at as u32 | 1);
        let (mut full, mut gives_way) = (Full::Total, false);
        for _ in 0..TRIES {
            // Claiming again before those in front have decided would only keep them from it.
            if gives_way && self.is_behind()? {
                thread::yield_now();
                continue;
            }
            self.write_header(tag)?;
            match self.look(spot, place.map_or(0, |place| place.count), tag)? {
                Look::Room => return self.fill(place),
                Look::Full(full) => return Err(full),
                Look::Contested(of, behind) => {
                    (full, gives_way) = (of, behind);
                    if behind {
                        self.write_header(0)?;
                    }
                    thread::yield_now();
                }
            }
        }
        Err(full)
    }

    /// Whether a worker with a lower slot claims a place.
    fn is_behind(&self) -> Result<bool, Full> {
        for region in self.others.iter().take(self.lower) {
            if read_header(region)?.1 > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts a connection: by its address first, so that it is never seen nowhere.
    fn fill(&mut self, place: Option<Place>) -> Result<(), Full> {
        place.map(|place| self.write_place(place, place.count + 1)).transpose()?;
        self.held += 1;
        self.write_header(0)
    }

    /// Whether there is room, `here` being what we hold from that address and `tag` our claim.
    fn look(&self, spot: Option<Spot>, here: u32, tag: u32) -> Result<Look, Full> {
        let (mut total, mut here) = (Tally::new(self.held), Tally::new(here));
        for (slot, region) in self.others.iter().enumerate() {
            let (held, claim) = read_header(region)?;
            total.add(held, claim > 0, slot < self.lower);
            // Somebody who holds nothing has counted nothing.
            let window = spot.filter(|_| held > 0).map(|spot| Window::read(region, spot.at)).transpose()?;
            let from_there = window.zip(spot).map_or(0, |(window, spot)| window.find(spot.key).map_or(0, |(_, n)| n));
            here.add(from_there, claim == tag, slot < self.lower);
        }
        let total = total.judge(self.limits.total, Full::Total);
        let here = spot.map_or(Look::Room, |_| here.judge(self.limits.per_address, Full::Address));
        Ok(match (total, here) {
            (Look::Full(_), _) | (Look::Contested(..), Look::Room | Look::Contested(..)) => total,
            (_, here) => here,
        })
    }

    fn spot(&self, address: IpAddr) -> Option<Spot> {
        (self.limits.per_address > 0).then(|| {
            let key = prefix(address, self.limits.prefixes);
            let mut hasher = DefaultHasher::new();
            (self.hash_key, key).hash(&mut hasher);
            Spot { key, at: (1 + hasher.finish() % self.starts) * PLACE as u64 }
        })
    }

    /// The place of an address in our table, which may be a free one.
    fn place(&self, spot: Spot) -> Result<Place, Full> {
        let window = Window::read(&self.own, spot.at)?;
        let (number, count) = window.find(spot.key).or_else(|| window.free()).ok_or(Full::Table)?;
        Ok(Place { key: spot.key, at: spot.at + (number * PLACE) as u64, count })
    }

    /// Counts a connection that is there.
    fn count(&self, address: IpAddr) -> Result<(), Full> {
        let Some(spot) = self.spot(address) else { return Ok(()) };
        let place = self.place(spot)?;
        self.write_place(place, place.count.saturating_add(1))
    }

    /// The opposite. Where nothing is counted, nothing happens.
    fn uncount(&self, address: IpAddr) {
        let counted = self.spot(address).and_then(|spot| self.place(spot).ok()).filter(|place| place.count > 0);
        // The page is there, so this does not fail.
        let _ = counted.map(|place| self.write_place(place, place.count - 1));
    }

    fn write_place(&self, place: Place, count: u32) -> Result<(), Full> {
        if place.count == 0 {
            pwrite(&self.own, &place.key.to_le_bytes(), place.at)?;
        }
        pwrite(&self.own, &count.to_le_bytes(), place.at + 16)?;
        Ok(())
    }

    /// Tells what we hold and whether we claim more; 0 is no claim. What is read afterwards is read later.
    fn write_header(&self, claim: u32) -> Result<(), Full> {
        let word = u64::from(claim) << 32 | u64::from(self.held);
        pwrite(&self.own, &word.to_le_bytes(), 0)?;
        fence(Ordering::SeqCst);
        Ok(())
    }
}

/// Connections held and claimed, of all workers.
#[derive(Debug, Clone, Copy)]
struct Tally {
    held: u64,
    claimed: u64,
    behind: bool,
}

impl Tally {
    fn new(own: u32) -> Self {
        Tally { held: own.into(), claimed: 0, behind: false }
    }

    fn add(&mut self, held: u32, claims: bool, lower: bool) {
        self.held += u64::from(held);
        self.claimed += u64::from(claims);
        self.behind |= claims && lower;
    }

    fn judge(self, limit: u64, full: Full) -> Look {
        if self.held >= limit {
            Look::Full(full)
        } else if self.held + self.claimed >= limit {
            Look::Contested(full, self.behind)
        } else {
            Look::Room
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::Barrier};

    use rustix::{
        fs::{MemfdFlags, ftruncate, memfd_create},
        io::pread,
    };

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn limits(total: u32, per_address: u32) -> FtpSettings {
        FtpSettings {
            max_sessions: total,
            max_sessions_per_address: per_address,
            address_prefixes: (32, 64),
            ..FtpSettings::default()
        }
    }

    fn region(places: u64) -> OwnedFd {
        let fd = memfd_create("ledger", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, places * PLACE as u64).unwrap();
        fd
    }

    fn workers(number: usize, settings: &FtpSettings) -> Vec<Ledger> {
        let regions: Vec<OwnedFd> = (0..number).map(|_| region(4096)).collect();
        let copy = |slot: usize| regions[slot].try_clone().unwrap();
        (0..number)
            .map(|slot| {
                let others = [(0..slot).map(copy).collect(), (slot + 1..number).map(copy).collect()];
                Ledger::new(copy(slot), others, 7, settings).unwrap()
            })
            .collect()
    }

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + number).into()
    }

    /// Every worker asks for as many places as there are, all at once; how many were given.
    fn race(ledgers: &mut [Ledger], tries: u32, address: IpAddr) -> usize {
        let barrier = Barrier::new(ledgers.len());
        thread::scope(|scope| {
            let runs: Vec<_> = ledgers
                .iter_mut()
                .map(|ledger| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        (0..tries).filter(|_| ledger.take(address).is_ok()).count()
                    })
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).sum()
        })
    }

    #[test]
    fn of_workers_that_race_for_the_last_places_each_gets_its_due_and_none_too_many() {
        for settings in [limits(10, 0), limits(1000, 10)] {
            let mut ledgers = workers(4, &settings);
            for _ in 0..100 {
                let given = race(&mut ledgers, 10, HERE);
                assert_eq!(given, 10, "{settings:?}");
                for ledger in &mut ledgers {
                    (0..ledger.held).for_each(|_| ledger.release(HERE));
                }
            }
        }
    }

    #[test]
    fn an_address_at_its_limit_leaves_room_for_others() {
        let mut ledgers = workers(2, &limits(100, 1));
        assert_eq!(ledgers[0].take(HERE), Ok(()));
        assert_eq!(ledgers[1].take(HERE), Err(Full::Address));
        assert_eq!(ledgers[1].take("::ffff:127.0.0.1".parse().unwrap()), Err(Full::Address));
        assert_eq!(ledgers[1].take(address(1)), Ok(()));
        ledgers[0].release(HERE);
        assert_eq!(ledgers[1].take(HERE), Ok(()));
    }

    #[test]
    fn prefixes_make_addresses_one() {
        let both = (96 + 24, 64);
        let of = |text: &str| prefix(text.parse().unwrap(), both);
        assert_eq!(of("192.0.2.1"), of("192.0.2.255"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(prefix(address(1), (128, 128)), prefix(address(0), (128, 128)));
        assert_eq!(prefix("::2".parse().unwrap(), (97, 1)), 0);
    }

    #[test]
    fn thousands_of_addresses_find_a_place_and_leave_none_behind() {
        let mut ledgers = workers(2, &limits(1000, 1));
        for round in 0..3 {
            for number in 0..1000 {
                assert_eq!(ledgers[number as usize % 2].take(address(number)), Ok(()), "{round}");
            }
            assert_eq!(ledgers[0].take(HERE), Err(Full::Total));
            for number in 0..1000 {
                ledgers[number as usize % 2].release(address(number));
            }
        }
        for region in [&ledgers[0].own, &ledgers[1].own] {
            let mut all = vec![0; 4096 * PLACE];
            assert_eq!(pread(region, &mut all, 0).unwrap(), all.len());
            assert!(all.chunks(PLACE).all(|place| place[16..20] == [0; 4]));
            assert_eq!(read_header(region).unwrap(), (0, 0));
        }
    }

    #[test]
    fn an_address_without_a_place_is_refused_and_nothing_is_lost() {
        let own = region(1 + WINDOW as u64 + 1);
        let mut ledger = Ledger::new(own, [Vec::new(), Vec::new()], 7, &limits(1000, 2)).unwrap();
        for number in 0..WINDOW as u32 {
            assert_eq!(ledger.take(address(number)), Ok(()));
        }
        assert_eq!(ledger.take(HERE), Err(Full::Table));
        assert_eq!(ledger.take(address(3)), Ok(()));
        ledger.release(address(5));
        assert_eq!(ledger.take(HERE), Ok(()));
        assert_eq!(ledger.held, 17);
    }

    #[test]
    fn new_prefixes_count_the_connections_there_are_anew() {
        let mut ledgers = workers(2, &limits(100, 3));
        let held = [address(1), address(2), address(3)];
        held.iter().for_each(|address| ledgers[0].take(*address).unwrap());
        let wide = FtpSettings { address_prefixes: (8, 64), ..limits(100, 3) };
        let (first, second) = ledgers.split_at_mut(1);
        first[0].obey(&wide, held.into_iter());
        second[0].obey(&wide, [].into_iter());
        assert_eq!(second[0].take(address(4)), Err(Full::Address));
        first[0].release(address(1));
        assert_eq!(second[0].take(address(4)), Ok(()));
        first[0].obey(&limits(100, 0), [address(2), address(3)].into_iter());
        first[0].obey(&limits(100, 1), [address(2), address(3)].into_iter());
        assert_eq!(first[0].take(address(2)), Err(Full::Address));
        assert_eq!(first[0].take(address(1)), Ok(()));
    }

    #[test]
    fn a_region_that_lies_stops_nobody_for_long_and_overflows_nothing() {
        let mut ledgers = workers(3, &limits(5, 3));
        let liar = ledgers.remove(0);
        for byte in [0xff, 0x80, 0x01] {
            pwrite(&liar.own, &[byte; 4096 * PLACE], 0).unwrap();
            assert_eq!(ledgers[0].take(HERE), Err(Full::Total));
        }
        // A claim that never ends takes the last place.
        pwrite(&liar.own, &[0; 4096 * PLACE], 0).unwrap();
        pwrite(&liar.own, &[1; 4], 4).unwrap();
        let taken = (0..10).filter(|number| ledgers[*number as usize % 2].take(address(*number)).is_ok()).count();
        assert_eq!(taken, 4);
    }
}
