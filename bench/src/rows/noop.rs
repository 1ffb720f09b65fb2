//! How long an idle session waits for a reply while others download: NOOPs, one by one, beside 16 downloads.
//!
//! All downloads share one client thread. The thread that asks runs at a raised priority (setpriority(2)): what it
//! waits for shall be the server, not its own turn on a CPU that the downloads keep busy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Better, Metric, Reading, Row, Turn, Turns, float};
use crate::client::Session;
use crate::crowd::{Crowd, Job};
use crate::error::{Call, Error, Result};
use crate::plan::MIB;
use crate::site::USER;

pub(super) const ROW: Row = Row {
    name: "noop",
    what: "NOOP on idle sessions while 16 others download",
    metrics: &[
        Metric { id: "noop-p50", what: "NOOP beside 16 downloads, median", unit: "ms", better: Better::Lower },
        Metric { id: "noop-p99", what: "NOOP beside 16 downloads, 99 of 100", unit: "ms", better: Better::Lower },
        Metric { id: "noop-downloads", what: "the 16 downloads meanwhile", unit: "MiB/s", better: Better::Higher },
        Metric { id: "noop-client", what: "client CPU, NOOP and downloads", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Planned,
    run,
};

/// Idle sessions that are asked in turn: a server of several workers has some on each.
const ASKED: usize = 4;
/// Between one reply and the next NOOP.
const PAUSE: Duration = Duration::from_millis(1);
/// Nice value of the thread that asks.
const PRIORITY: i32 = -15;

fn run(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let mut idle = (0..ASKED).map(|_| turn.session()).collect::<Result<Vec<_>>>()?;
    idle.iter_mut().for_each(|session| session.until(turn.deadline()));
    let mut crowd = Crowd::new(0, turn.plan.parallel)?;
    let deadline = turn.deadline();
    crowd.run(&Job::Login { port: turn.server.port, user: USER, password: &turn.place.password }, deadline)?;
    let over = AtomicBool::new(false);
    let job = Job::Retr { name: "big.bin", len: turn.plan.big };
    let meter = turn.meter();
    let (waits, driven) = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let waits = ask(&mut idle, turn.plan.noops);
            over.store(true, Ordering::Relaxed);
            waits
        });
        let driven = crowd.repeat(&job, deadline, &over);
        (asking.join(), driven)
    });
    let spent = meter.stop();
    driven?;
    if let Some(fault) = crowd.fault {
        return Err(Error::Other(format!("{} of the downloads failed: {fault}", crowd.lost)));
    }
    let waits = waits.map_err(|_| Error::Other("the asking thread died".into()))??;
    idle.into_iter().try_for_each(Session::quit)?;
    let rate = float(crowd.received) / float(MIB) / spent.wall;
    Ok(vec![
        Reading::Figure(at(&waits, 50)),
        Reading::Figure(at(&waits, 99)),
        Reading::Figure(rate),
        spent.client_busy(),
    ])
}

/// The waits in milliseconds, sorted.
fn ask(idle: &mut [Session], count: usize) -> Result<Vec<f64>> {
    rustix::process::setpriority_process(Some(rustix::thread::gettid()), PRIORITY).call(|| "setpriority".into())?;
    // The downloads must be under way.
    thread::sleep(100 * PAUSE);
    let mut waits = Vec::with_capacity(count);
    for number in 0..count {
        let began = Instant::now();
        idle[number % ASKED].command("NOOP", &[200])?;
        waits.push(began.elapsed().as_secs_f64() * 1e3);
        thread::sleep(PAUSE);
    }
    waits.sort_unstable_by(f64::total_cmp);
    Ok(waits)
}

/// The wait that `per_cent` of all do not exceed.
fn at(sorted: &[f64], per_cent: usize) -> f64 {
    let rank = (sorted.len() * per_cent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninety_nine_of_a_hundred_do_not_wait_longer() {
        let waits: Vec<_> = (1..=200).map(f64::from).collect();
        assert!((at(&waits, 99) - 198.0).abs() < f64::EPSILON);
        assert!((at(&waits, 50) - 100.0).abs() < f64::EPSILON);
        assert!(at(&[], 99).is_nan());
    }
}
