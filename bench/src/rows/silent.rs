//! 10,000 connections that take the greeting and send nothing: what they weigh, and how another client fares.
//!
//! Fewer where RLIMIT_NOFILE does not allow so many: the first figure tells how many were greeted and still open in
//! the end. A server that refuses some, as its configuration may say, is as welcome as one that holds all.

use std::time::Instant;

use nix::sys::resource::{Resource, getrlimit};

use super::memory::weigh;
use super::{Better, Metric, Reading, Row, Turn, Turns, float};
use crate::client::Session;
use crate::error::{Call, Result};
use crate::report::median;
use crate::site::{USER, small_name};

pub(super) const ROW: Row = Row {
    name: "silent",
    what: "10,000 connections that send nothing, and a client that logs in and fetches 16 KiB beside them",
    metrics: &[
        Metric { id: "silent-held", what: "silent connections held", unit: "connections", better: Better::Higher },
        Metric { id: "silent-pss", what: "growth with them", unit: "MiB", better: Better::Lower },
        Metric {
            id: "silent-served",
            what: "log in, RETR, QUIT beside them, median",
            unit: "ms",
            better: Better::Lower,
        },
        Metric { id: "silent-worst", what: "log in, RETR, QUIT beside them, worst", unit: "ms", better: Better::Lower },
        Metric { id: "silent-none", what: "log in, RETR, QUIT without, median", unit: "ms", better: Better::Lower },
    ],
    alone: Some(10_000),
    secured: false,
    turns: Turns::AtMost(2),
    run,
};

/// Visits of the other client.
const VISITS: usize = 100;
/// Descriptors kept for everything else.
const SPARE: u64 = 256;

fn run(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let without = visits(turn)?;
    let idle = weigh(turn)?;
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).call(|| "getrlimit".into())?;
    let count = usize::try_from(limit.saturating_sub(SPARE)).unwrap_or(usize::MAX).min(turn.plan.silent);
    let deadline = Instant::now() + 2 * turn.plan.limit;
    let mut silent = Vec::with_capacity(count);
    let mut refused = 0;
    while silent.len() + refused < count && Instant::now() < deadline {
        match Session::connect(turn.server.port, deadline) {
            Ok(session) => silent.push(session),
            Err(_) => refused += 1,
        }
    }
    let weight = weigh(turn)? - idle;
    let beside = visits(turn)?;
    let held = silent.iter().filter(|s| s.is_open()).count();
    let worst = beside.iter().copied().fold(0.0, f64::max);
    let (beside, without) = (median(&beside).unwrap_or(f64::NAN), median(&without).unwrap_or(f64::NAN));
    Ok([float(held as u64), weight, beside, worst, without].map(Reading::Figure).into())
}

/// Another client: connect, log in, RETR of a small file, QUIT, over and over; the milliseconds of each visit but the
/// first, which may have to check the password.
fn visits(turn: &Turn<'_>) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(VISITS);
    for number in 0..=VISITS {
        let began = Instant::now();
        let mut session = Session::connect(turn.server.port, turn.deadline())?;
        session.login(USER, &turn.place.password)?;
        session.download(&small_name('s', 0))?;
        session.quit()?;
        if number > 0 {
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(times)
}
