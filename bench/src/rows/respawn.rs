//! All workers killed at once; how long until a client that comes then is greeted by a new one.

use std::time::Instant;

use super::{Better, Metric, Reading, Row, Turn, Turns};
use crate::client::Session;
use crate::error::{Error, Result};
use crate::proc;
use crate::servers::Role;

pub(super) const ROW: Row = Row {
    name: "respawn",
    what: "kill -9 of all workers at once; then connect and read 220",
    metrics: &[Metric { id: "respawn", what: "killed to greeted", unit: "ms", better: Better::Lower }],
    // A worker that died before, not long ago, is started again later: each turn has a fresh server.
    alone: Some(0),
    secured: false,
    turns: Turns::Planned,
    run,
};

fn run(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    if turn.server.kind.role != Role::Ours {
        return Ok(vec![Reading::Skipped("no workers that would be started again".into())]);
    }
    turn.session()?.quit()?;
    let workers = proc::named(turn.server.pid(), "caisson-worker");
    if workers.is_empty() {
        return Err(Error::Other("there is no worker to kill".into()));
    }
    let began = Instant::now();
    workers.into_iter().for_each(proc::Member::end);
    drop(Session::connect(turn.server.port, turn.deadline())?);
    Ok(vec![Reading::Figure(began.elapsed().as_secs_f64() * 1e3)])
}
