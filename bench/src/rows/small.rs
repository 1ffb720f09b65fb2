//! A thousand files of 16 KiB on one session, each on a data connection of its own.

use super::{Better, Metric, Reading, Row, Spent, Turn, Turns, float};
use crate::client::source;
use crate::error::{Error, Result};
use crate::site::small_name;

pub(super) const DOWN: Row = Row {
    name: "small-down",
    what: "many × (EPSV, RETR of 16 KiB) on one session (1,000 in a whole run)",
    metrics: &[
        Metric { id: "small-down", what: "16 KiB files down", unit: "files/s", better: Better::Higher },
        Metric { id: "small-down-cpu", what: "server CPU, a file down", unit: "µs", better: Better::Lower },
        Metric { id: "small-down-client", what: "client CPU, files down", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Times(5),
    run: down,
};

pub(super) const UP: Row = Row {
    name: "small-up",
    what: "many × (EPSV, STOR of 16 KiB under a new name) on one session (1,000 in a whole run)",
    metrics: &[
        Metric { id: "small-up", what: "16 KiB files up", unit: "files/s", better: Better::Higher },
        Metric { id: "small-up-cpu", what: "server CPU, a file up", unit: "µs", better: Better::Lower },
        Metric { id: "small-up-client", what: "client CPU, files up", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Times(5),
    run: up,
};

fn down(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let names: Vec<_> = (0..turn.plan.small).map(|n| small_name('s', n)).collect();
    let mut session = turn.session()?;
    session.until(turn.deadline());
    let meter = turn.meter();
    for name in &names {
        let got = session.download(name)?;
        if got != turn.plan.small_len {
            return Err(Error::Other(format!("{name} ended after {got} bytes")));
        }
    }
    let spent = meter.stop();
    session.quit()?;
    Ok(readings(spent, names.len()))
}

fn up(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let names: Vec<_> = (0..turn.plan.small).map(|n| small_name('u', n)).collect();
    let small = source(&turn.place.data.join(small_name('s', 0)))?;
    names.iter().for_each(|name| turn.place.forget(name));
    let mut session = turn.session()?;
    session.until(turn.deadline());
    let meter = turn.meter();
    for name in &names {
        session.upload(name, &small, turn.plan.small_len)?;
    }
    let spent = meter.stop();
    session.quit()?;
    let arrived = names.iter().try_for_each(|name| turn.place.expect(name, turn.plan.small_len));
    names.iter().for_each(|name| turn.place.forget(name));
    arrived.map(|()| readings(spent, names.len()))
}

fn readings(spent: Spent, files: usize) -> Vec<Reading> {
    let files = float(files as u64);
    vec![Reading::Figure(files / spent.wall), Reading::Figure(spent.server * 1e6 / files), spent.client_busy()]
}
