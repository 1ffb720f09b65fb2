//! One large file, down and up, on one session.

use super::{Better, Metric, Reading, Row, Spent, Turn, Turns, float};
use crate::client::source;
use crate::error::{Error, Result};
use crate::plan::MIB;

pub(super) const DOWNLOAD: Row = Row {
    name: "download",
    what: "RETR of one large file (1 GiB in a whole run), EPSV to 226",
    metrics: &[
        Metric { id: "download", what: "one large file down", unit: "MiB/s", better: Better::Higher },
        Metric { id: "download-cpu", what: "server CPU, download", unit: "s/GiB", better: Better::Lower },
        Metric { id: "download-client", what: "client CPU, download", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Times(40),
    run: download,
};

pub(super) const UPLOAD: Row = Row {
    name: "upload",
    what: "STOR of one large file (1 GiB in a whole run) under a new name, EPSV to 226",
    metrics: &[
        Metric { id: "upload", what: "one large file up", unit: "MiB/s", better: Better::Higher },
        Metric { id: "upload-cpu", what: "server CPU, upload", unit: "s/GiB", better: Better::Lower },
        Metric { id: "upload-client", what: "client CPU, upload", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Times(3),
    run: upload,
};

fn download(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let mut session = turn.session()?;
    session.until(turn.deadline());
    let meter = turn.meter();
    let got = session.download("big.bin")?;
    let spent = meter.stop();
    session.quit()?;
    if got != turn.plan.big {
        return Err(Error::Other(format!("download ended after {got} of {} bytes", turn.plan.big)));
    }
    Ok(readings(spent, got))
}

fn upload(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let big = source(&turn.place.data.join("big.bin"))?;
    turn.place.forget("up.bin");
    let mut session = turn.session()?;
    session.until(turn.deadline());
    let meter = turn.meter();
    session.upload("up.bin", &big, turn.plan.big)?;
    let spent = meter.stop();
    session.quit()?;
    let arrived = turn.place.expect("up.bin", turn.plan.big);
    turn.place.forget("up.bin");
    arrived.map(|()| readings(spent, turn.plan.big))
}

fn readings(spent: Spent, bytes: u64) -> Vec<Reading> {
    let mib = float(bytes) / float(MIB);
    vec![Reading::Figure(mib / spent.wall), Reading::Figure(spent.server / (mib / 1024.0)), spent.client_busy()]
}
