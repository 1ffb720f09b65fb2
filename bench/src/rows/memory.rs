//! Memory of all processes of a server: idle, and how it grows with idle logged-in sessions of one user.
//!
//! The server is freshly started and alone, so that pages shared with other servers do not flatter it.

use std::thread;
use std::time::{Duration, Instant};

use super::{Better, Metric, Reading, Row, Turn, Turns, float};
use crate::client::Session;
use crate::error::Result;
use crate::plan::MIB;
use crate::proc;

pub(super) const ROW: Row = Row {
    name: "memory",
    what: "PSS of all processes, freshly started, then with idle sessions of one user",
    metrics: &[
        Metric { id: "pss-idle", what: "idle, no session yet", unit: "MiB", better: Better::Lower },
        Metric { id: "pss-200", what: "growth with 200 sessions", unit: "MiB", better: Better::Lower },
        Metric { id: "pss-1000", what: "growth with 1,000 sessions", unit: "MiB", better: Better::Lower },
        Metric { id: "pss-5000", what: "growth with 5,000 sessions", unit: "MiB", better: Better::Lower },
    ],
    alone: Some(STEPS[0]),
    secured: false,
    turns: Turns::AtMost(2),
    run,
};

const STEPS: [usize; 3] = [200, 1000, 5000];

fn run(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let kind = turn.server.kind;
    let idle = weigh(turn)?;
    let mut readings = vec![Reading::Figure(idle)];
    let mut sessions: Vec<Session> = Vec::new();
    for step in STEPS {
        if step > kind.idle_most {
            readings.push(Reading::Skipped(kind.idle_reason.into()));
        } else if step > turn.plan.idle_most {
            readings.push(Reading::Skipped("left out of a quick run".into()));
        } else if let Err(fault) = fill(turn, &mut sessions, step) {
            readings.push(Reading::Skipped(format!("only {} sessions: {fault}", sessions.len())));
        } else {
            readings.push(Reading::Figure(weigh(turn)? - idle));
        }
    }
    Ok(readings)
}

/// Logs sessions in until there are `step` of them.
pub(super) fn fill(turn: &Turn<'_>, sessions: &mut Vec<Session>, step: usize) -> Result<()> {
    let deadline = Instant::now() + 2 * turn.plan.limit;
    while sessions.len() < step {
        let mut session = turn.session()?;
        session.until(deadline);
        sessions.push(session);
        if Instant::now() > deadline {
            return Err(crate::error::Error::Late(format!("{step} logins")));
        }
    }
    Ok(())
}

/// What servers keep for a while after logins (caisson-authd(8): 5 seconds) is no part of what sessions cost.
const REST: Duration = Duration::from_secs(6);

/// The weight in MiB once the server has come to rest.
pub(super) fn weigh(turn: &Turn<'_>) -> Result<f64> {
    thread::sleep(REST);
    proc::settle(turn.server.pid(), Duration::from_secs(3));
    proc::pss(turn.server.pid()).map(|bytes| float(bytes) / float(MIB))
}
