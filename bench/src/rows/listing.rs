//! A directory of 10,000 entries, as LIST and as MLSD. Several listings a turn; their median is the figure.

use super::{Better, Metric, Reading, Row, Turn, Turns};
use crate::error::{Error, Result};
use crate::report::median;
use crate::servers::Role;

pub(super) const LIST: Row = Row {
    name: "list",
    what: "LIST of a directory of 10,000 entries, from the command to 226",
    metrics: &[
        Metric { id: "list", what: "LIST of 10,000 entries", unit: "ms", better: Better::Lower },
        Metric { id: "list-cpu", what: "server CPU, a LIST", unit: "ms", better: Better::Lower },
        Metric { id: "list-client", what: "client CPU, LIST", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Times(5),
    run: |turn| run(turn, "LIST"),
};

pub(super) const MLSD: Row = Row {
    name: "mlsd",
    what: "MLSD of a directory of 10,000 entries, from the command to 226",
    metrics: &[
        Metric { id: "mlsd", what: "MLSD of 10,000 entries", unit: "ms", better: Better::Lower },
        Metric { id: "mlsd-cpu", what: "server CPU, an MLSD", unit: "ms", better: Better::Lower },
        Metric { id: "mlsd-client", what: "client CPU, MLSD", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Times(5),
    run: |turn| run(turn, "MLSD"),
};

/// Listings of one turn.
const TIMES: u32 = 5;

fn run(turn: &Turn<'_>, verb: &str) -> Result<Vec<Reading>> {
    let role = turn.server.kind.role;
    if role == Role::Floor {
        return Ok(vec![Reading::Skipped("the floor lists nothing".into()); 3]);
    }
    let mut session = turn.session()?;
    session.until(turn.deadline());
    session.command("CWD list", &[250])?;
    let meter = turn.meter();
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let (time, text) = match session.listing(verb) {
            // Replies 500 and 502: the command is not known here (RFC 959 section 4.2.2).
            Err(Error::Reply { got, .. })
                if role == Role::Peer && (got.starts_with("500") || got.starts_with("502")) =>
            {
                return Ok(vec![Reading::Skipped(format!("no {verb}")); 3]);
            }
            listed => listed?,
        };
        check(turn, verb, &text)?;
        times.push(time.as_secs_f64() * 1e3);
    }
    let spent = meter.stop();
    session.quit()?;
    let time = median(&times).unwrap_or(f64::NAN);
    Ok(vec![Reading::Figure(time), Reading::Figure(spent.server * 1e3 / f64::from(TIMES)), spent.client_busy()])
}

/// Every entry has its line; a server may add `.` and `..` and a line with the total.
fn check(turn: &Turn<'_>, verb: &str, text: &[u8]) -> Result<()> {
    let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    let (mut named, mut others) = (0, 0);
    for line in lines {
        let name = line.strip_suffix(b"\r").unwrap_or(line);
        if name.ends_with(b".bin") { named += 1 } else { others += 1 }
    }
    if named == turn.plan.entries && others <= 3 {
        return Ok(());
    }
    Err(Error::Other(format!("{verb} gave {named} entries and {others} other lines, expected {}", turn.plan.entries)))
}
