//! A download beside 5,000 idle logged-in sessions, held against downloads before they come and after they left.

use std::time::Instant;

use super::memory::fill;
use super::{Better, Metric, Reading, Row, Turn, Turns, float};
use crate::client::Session;
use crate::error::{Error, Result};
use crate::plan::MIB;
use crate::proc;
use crate::report::median;

pub(super) const ROW: Row = Row {
    name: "beside",
    what: "RETR of one large file beside 5,000 idle logged-in sessions of one user",
    metrics: &[
        Metric { id: "beside", what: "download beside 5,000 sessions", unit: "MiB/s", better: Better::Higher },
        Metric { id: "beside-none", what: "the same without them", unit: "MiB/s", better: Better::Higher },
        Metric { id: "beside-ratio", what: "with, as a part of without", unit: "×", better: Better::Higher },
        Metric { id: "beside-sessions", what: "sessions there were", unit: "sessions", better: Better::Neither },
    ],
    alone: Some(5000),
    secured: false,
    turns: Turns::AtMost(3),
    run,
};

/// Downloads before, beside and after.
const TIMES: usize = 3;

fn run(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut without = rates(turn, TIMES)?;
    fill(turn, &mut sessions, turn.plan.idle_most)?;
    rest(turn);
    let with = rates(turn, TIMES + 1)?;
    let held = sessions.iter().filter(|s| s.is_open()).count();
    drop(sessions);
    rest(turn);
    without.extend(rates(turn, TIMES)?);
    let with = median(&with).unwrap_or(f64::NAN);
    let without = median(&without).unwrap_or(f64::NAN);
    Ok([with, without, with / without, float(held as u64)].map(Reading::Figure).into())
}

fn rest(turn: &Turn<'_>) {
    proc::settle(turn.server.pid(), turn.plan.limit);
}

/// Downloads one after another on a session of their own, MiB/s each.
fn rates(turn: &Turn<'_>, times: usize) -> Result<Vec<f64>> {
    let mut session = turn.session()?;
    let mut rates = Vec::new();
    for _ in 0..times {
        session.until(turn.deadline());
        let began = Instant::now();
        let got = session.download("big.bin")?;
        let wall = began.elapsed().as_secs_f64();
        if got != turn.plan.big {
            return Err(Error::Other(format!("download ended after {got} of {} bytes", turn.plan.big)));
        }
        rates.push(float(got) / float(MIB) / wall);
    }
    session.quit()?;
    Ok(rates)
}
