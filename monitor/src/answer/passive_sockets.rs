//! Answers `PassivePool`: hands a worker listening sockets of the passive range, for clients of one listener.
//!
//! Runs as root. Reads from: worker (hostile). Trusts: the configuration's range.
//! Ports are drawn at random, so that nobody guesses the next one (RFC 2577 8). No copy is kept: a socket is the worker's until it
//! closes it. Batches are small enough that a range of ten ports serves every worker, and a worker that gives nothing back leaves
//! the others their part: half of the range is anybody's, the rest is divided by number, so nothing need be counted.
//! Not here: which session gets which socket (worker/src/ftp/data.rs).

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use ipc::link::monitor_config::Ports;
use ipc::link::monitor_worker::{PassivePool, PassiveSockets, ToWorker};
use ipc::{Breach, MAX_FDS, types::WorkerId};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::{listen, monitor::Monitor};

/// Most ports tried for one question, so that a range in use costs root a bounded time.
const MOST_TRIED: u32 = 256;

pub(crate) fn answer_passive_pool(m: &mut Monitor, id: WorkerId, ask: PassivePool) -> Result<(), Breach> {
    let wanted = usize::from(ask.wanted);
    if !(1..=MAX_FDS).contains(&wanted) {
        return Err(Breach::OutOfPhase("PassivePool wants 1 to 32 sockets"));
    }
    let Some(worker) = m.workers.get_mut(&id) else { return Ok(()) };
    let ports = m.config.passive_ports;
    let most = wanted.min(batch(ports, m.config.fixed.workers));
    let part = (u32::try_from(worker.slot).unwrap_or(0), m.config.fixed.workers);
    // A listener may have gone by a reload; and a worker that does not read what it asked for gets no more of it.
    let listener = m.listeners.iter().find(|listening| listening.id == ask.listener && !worker.child.peer.behind());
    let sockets = listener.map_or_else(Vec::new, |listener| bind_some(listener.address.ip(), ports, most, part));
    worker.child.send(ToWorker::PassivePool(PassiveSockets { listener: ask.listener }), sockets);
    Ok(())
}

/// How many there are, at least one.
fn count(ports: Ports) -> u32 {
    u32::from(ports.last.saturating_sub(ports.first)) + 1
}

/// Most sockets handed out at a time.
fn batch(ports: Ports, workers: u32) -> usize {
    (count(ports) / (2 * workers.max(1))).clamp(1, 32) as usize
}

/// Whether the worker of a slot may have the port at this place of the range: those at even places are everybody's.
fn may_have((slot, workers): (u32, u32), place: u32, range: u32) -> bool {
    let parts = workers.min(range / 2).max(1);
    place.is_multiple_of(2) || (place / 2) % parts == slot % parts
}

/// Binds up to `wanted` free ports of the range, of those that are everybody's or the worker's.
fn bind_some(ip: IpAddr, ports: Ports, wanted: usize, part: (u32, u32)) -> Vec<OwnedFd> {
    let range = count(ports);
    let mut sockets = Vec::new();
    let mut next = random() % range;
    for _ in 0..MOST_TRIED.min(range) {
        if sockets.len() == wanted {
            break;
        }
        let port = ports.first.saturating_add(u16::try_from(next).unwrap_or(0));
        match may_have(part, next, range).then(|| listen::passive(ip, port)) {
            Some(Ok(socket)) => {
                sockets.push(socket);
                next = random() % range;
            }
            _ => next = (next + 1) % range,
        }
    }
    sockets
}

fn random() -> u32 {
    let mut bytes = [0; 4];
    // The kernel's pool is ready long before a root process of ours runs; without it, zero is a port like any other.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    u32::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, net::SocketAddr};

    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 83));

    #[test]
    fn a_small_range_is_shared_by_all_workers() {
        let ports = Ports { first: 50_000, last: 50_009 };
        assert_eq!([batch(ports, 1), batch(ports, 2), batch(ports, 8)], [5, 2, 1]);
        assert_eq!(batch(Ports { first: 1024, last: 65_535 }, 2), 32);
    }

    #[test]
    fn a_worker_that_keeps_all_it_can_get_leaves_the_others_their_part() {
        let ports = Ports { first: 41_840, last: 41_849 };
        let take_all = |slot| (0..64).flat_map(|_| bind_some(LOOPBACK, ports, 5, (slot, 2))).collect::<Vec<_>>();
        let (greedy, other) = (take_all(1), take_all(2));
        // Five are everybody's; of those at places 1, 3, 5, 7 and 9 the first slot has the second and fourth.
        assert_eq!((greedy.len(), other.len()), (7, 3));
    }

    #[test]
    fn every_port_is_somebodys_and_every_worker_has_some_of_its_own_where_there_are_enough() {
        for (range, workers) in [(1, 1), (1, 4), (2, 8), (10, 1), (10, 2), (10, 128), (1000, 128)] {
            let had = |slot| (0..range).filter(move |&place| may_have((slot, workers), place, range));
            assert_eq!((1..=workers).flat_map(had).collect::<BTreeSet<u32>>().len(), range as usize);
            let own = |slot| had(slot).filter(|place| place % 2 == 1).count();
            assert!((1..=workers).all(|slot| had(slot).next().is_some() && (range < 2 || own(slot) > 0)));
            assert!(workers > 1 || had(1).count() == range as usize);
        }
    }

    #[test]
    fn each_port_is_handed_out_once_and_again_when_it_is_closed() {
        let ports = Ports { first: 41_830, last: 41_833 };
        let mut held = Vec::new();
        for _ in 0..16 {
            held.extend(bind_some(LOOPBACK, ports, 2, (1, 1)));
        }
        let bound: BTreeSet<u16> =
            held.iter().map(|s| SocketAddr::try_from(rustix::net::getsockname(s).unwrap()).unwrap().port()).collect();
        assert_eq!((held.len(), bound.len()), (4, 4));
        assert!(bind_some(LOOPBACK, ports, 1, (1, 1)).is_empty());
        held.pop();
        assert_eq!((0..8).map(|_| bind_some(LOOPBACK, ports, 4, (1, 1)).len()).max(), Some(1));
    }
}
