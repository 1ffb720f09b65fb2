//! Sixteen downloads at once, 1 GiB in all.

use std::sync::Barrier;
use std::thread;

use super::{Better, Metric, Reading, Row, Turn, Turns, float};
use crate::client::Session;
use crate::error::{Error, Result};
use crate::plan::MIB;

pub(super) const ROW: Row = Row {
    name: "parallel",
    what: "16 sessions RETR at once (1 GiB in all in a whole run)",
    metrics: &[
        Metric { id: "parallel", what: "16 parallel downloads", unit: "MiB/s", better: Better::Higher },
        Metric { id: "parallel-cpu", what: "server CPU, parallel", unit: "s/GiB", better: Better::Lower },
        Metric { id: "parallel-client", what: "client CPU, parallel", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Planned,
    run,
};

fn run(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let count = turn.plan.parallel;
    let mut sessions = (0..count).map(|_| turn.session()).collect::<Result<Vec<_>>>()?;
    for session in &mut sessions {
        session.until(turn.deadline());
    }
    let gate = Barrier::new(count + 1);
    let (meter, ended) = thread::scope(|scope| {
        let clients: Vec<_> = sessions.into_iter().map(|session| scope.spawn(|| one(session, &gate))).collect();
        let meter = turn.meter();
        gate.wait();
        let ended: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        (meter, ended)
    });
    let spent = meter.stop();
    let mut bytes = 0;
    for result in ended {
        let (session, got) = result.map_err(|_| Error::Other("a client thread died".into()))??;
        session.quit()?;
        bytes += got;
    }
    let expected = turn.plan.part * count as u64;
    if bytes != expected {
        return Err(Error::Other(format!("downloads ended after {bytes} of {expected} bytes")));
    }
    let mib = float(bytes) / float(MIB);
    Ok(vec![Reading::Figure(mib / spent.wall), Reading::Figure(spent.server / (mib / 1024.0)), spent.client_busy()])
}

fn one(mut session: Session, gate: &Barrier) -> Result<(Session, u64)> {
    gate.wait();
    let got = session.download("part.bin")?;
    Ok((session, got))
}
