//! Connections: connect, read 220, close, one after another.

use super::{Better, Metric, Reading, Row, Turn, Turns, float};
use crate::client::Session;
use crate::error::Result;

pub(super) const ROW: Row = Row {
    name: "connect",
    what: "connect, read 220, close, one after another",
    metrics: &[
        Metric { id: "connect", what: "connections", unit: "/s", better: Better::Higher },
        Metric { id: "connect-cpu", what: "server CPU, a connection", unit: "µs", better: Better::Lower },
        Metric { id: "connect-client", what: "client CPU, connections", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Planned,
    run,
};

fn run(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let deadline = turn.deadline();
    let mut count = 0;
    let meter = turn.meter();
    while meter.elapsed() < turn.plan.window {
        drop(Session::connect(turn.server.port, deadline)?);
        count += 1;
    }
    let spent = meter.stop_at_rest(turn.plan.limit);
    let count = float(count);
    Ok(vec![Reading::Figure(count / spent.wall), Reading::Figure(spent.server * 1e6 / count), spent.client_busy()])
}
