//! The same under TLS 1.3 (RFC 4217): one large file, small files, handshakes, and what idle sessions weigh.
//!
//! Data connections resume where the server can. One cipher suite for all, one certificate of ECDSA P-256. A large download is received unopened, and its records are
//! counted: what is measured is the server.

use std::thread;

use super::{Better, Metric, Reading, Row, Spent, Turn, Turns, float, memory};
use crate::client::{Session, source};
use crate::error::{Error, Result};
use crate::plan::MIB;
use crate::site::small_name;

pub(super) const DOWNLOAD: Row = Row {
    name: "tls-download",
    what: "under TLS: RETR of one large file (1 GiB in a whole run), EPSV to 226",
    metrics: &[
        Metric { id: "tls-download", what: "one large file down under TLS", unit: "MiB/s", better: Better::Higher },
        Metric { id: "tls-download-cpu", what: "server CPU, download under TLS", unit: "s/GiB", better: Better::Lower },
        Metric {
            id: "tls-download-client",
            what: "client CPU, download under TLS",
            unit: "% busy",
            better: Better::Neither,
        },
    ],
    alone: None,
    secured: true,
    turns: Turns::Times(3),
    run: download,
};

pub(super) const UPLOAD: Row = Row {
    name: "tls-upload",
    what: "under TLS: STOR of one large file (1 GiB in a whole run) under a new name, EPSV to 226",
    metrics: &[
        Metric { id: "tls-upload", what: "one large file up under TLS", unit: "MiB/s", better: Better::Higher },
        Metric { id: "tls-upload-cpu", what: "server CPU, upload under TLS", unit: "s/GiB", better: Better::Lower },
        Metric {
            id: "tls-upload-client",
            what: "client CPU, upload under TLS",
            unit: "% busy",
            better: Better::Neither,
        },
    ],
    alone: None,
    secured: true,
    turns: Turns::Times(3),
    run: upload,
};

pub(super) const SMALL_DOWN: Row = Row {
    name: "tls-small-down",
    what: "under TLS: many × (EPSV, RETR of 16 KiB, resumed) on one session (1,000 in a whole run)",
    metrics: &[
        Metric { id: "tls-small-down", what: "16 KiB files down under TLS", unit: "files/s", better: Better::Higher },
        Metric {
            id: "tls-small-down-resumed",
            what: "of the data connections down, resumed",
            unit: "%",
            better: Better::Higher,
        },
        Metric {
            id: "tls-small-down-cpu",
            what: "server CPU, a file down under TLS",
            unit: "µs",
            better: Better::Lower,
        },
        Metric {
            id: "tls-small-down-client",
            what: "client CPU, files down under TLS",
            unit: "% busy",
            better: Better::Neither,
        },
    ],
    alone: None,
    secured: true,
    turns: Turns::Planned,
    run: small_down,
};

pub(super) const SMALL_UP: Row = Row {
    name: "tls-small-up",
    what: "under TLS: many × (EPSV, STOR of 16 KiB under a new name, resumed) on one session (1,000 in a whole run)",
    metrics: &[
        Metric { id: "tls-small-up", what: "16 KiB files up under TLS", unit: "files/s", better: Better::Higher },
        Metric {
            id: "tls-small-up-resumed",
            what: "of the data connections up, resumed",
            unit: "%",
            better: Better::Higher,
        },
        Metric { id: "tls-small-up-cpu", what: "server CPU, a file up under TLS", unit: "µs", better: Better::Lower },
        Metric {
            id: "tls-small-up-client",
            what: "client CPU, files up under TLS",
            unit: "% busy",
            better: Better::Neither,
        },
    ],
    alone: None,
    secured: true,
    turns: Turns::Planned,
    run: small_up,
};

pub(super) const HANDSHAKES: Row = Row {
    name: "tls-handshakes",
    what: "16 clients at once, each again and again: connect, AUTH TLS, a full handshake, close",
    metrics: &[
        Metric { id: "tls-handshakes", what: "full handshakes", unit: "/s", better: Better::Higher },
        Metric { id: "tls-handshakes-cpu", what: "server CPU, a handshake", unit: "µs", better: Better::Lower },
        Metric { id: "tls-handshakes-client", what: "client CPU, handshakes", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: true,
    turns: Turns::Planned,
    run: handshakes,
};

pub(super) const MEMORY: Row = Row {
    name: "tls-memory",
    what: "PSS of all processes, freshly started with a certificate, then with 200 idle sessions of one user under TLS",
    metrics: &[
        Metric {
            id: "tls-pss-idle",
            what: "idle, no session yet, with a certificate",
            unit: "MiB",
            better: Better::Lower,
        },
        Metric { id: "tls-pss-200", what: "growth with 200 sessions under TLS", unit: "MiB", better: Better::Lower },
    ],
    alone: Some(IDLE),
    secured: true,
    turns: Turns::AtMost(2),
    run: idle,
};

/// Idle sessions.
const IDLE: usize = 200;
/// Clients that do handshakes at once.
const CLIENTS: usize = 16;
/// Bytes sealed at once.
const BLOCK: usize = 256 << 10;

fn download(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let mut session = turn.secured_session()?;
    let meter = turn.meter();
    let got = session.skim_secured("big.bin", turn.plan.big)?;
    let spent = meter.stop();
    session.quit()?;
    // Records are a little longer than what is in them, and there are tickets.
    if got < turn.plan.big || got > turn.plan.big + turn.plan.big / 16 + MIB {
        return Err(Error::Other(format!("download ended after {got} bytes of records for {}", turn.plan.big)));
    }
    Ok(bulk(spent, turn.plan.big))
}

fn upload(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let block = vec![0x5a; BLOCK];
    turn.place.forget("up.bin");
    let mut session = turn.secured_session()?;
    let meter = turn.meter();
    session.upload_secured("up.bin", &block, turn.plan.big)?;
    let spent = meter.stop();
    session.quit()?;
    let arrived = turn.place.expect("up.bin", turn.plan.big);
    turn.place.forget("up.bin");
    arrived.map(|()| bulk(spent, turn.plan.big))
}

fn bulk(spent: Spent, bytes: u64) -> Vec<Reading> {
    let mib = float(bytes) / float(MIB);
    vec![Reading::Figure(mib / spent.wall), Reading::Figure(spent.server / (mib / 1024.0)), spent.client_busy()]
}

fn small_down(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let names: Vec<_> = (0..turn.plan.small).map(|n| small_name('s', n)).collect();
    let mut session = turn.secured_session()?;
    let meter = turn.meter();
    for name in &names {
        let got = session.download_secured(name)?;
        if got != turn.plan.small_len {
            return Err(Error::Other(format!("{name} ended after {got} bytes")));
        }
    }
    let spent = meter.stop();
    let resumed = session.resumed();
    session.quit()?;
    Ok(small(spent, names.len(), resumed))
}

fn small_up(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let names: Vec<_> = (0..turn.plan.small).map(|n| small_name('u', n)).collect();
    let mut block = vec![0; usize::try_from(turn.plan.small_len).unwrap_or(0)];
    let small_file = source(&turn.place.data.join(small_name('s', 0)))?;
    rustix::io::pread(&small_file, &mut block, 0)
        .map_err(|errno| Error::Other(format!("read a small file: {errno}")))?;
    names.iter().for_each(|name| turn.place.forget(name));
    let mut session = turn.secured_session()?;
    let meter = turn.meter();
    for name in &names {
        session.upload_secured(name, &block, turn.plan.small_len)?;
    }
    let spent = meter.stop();
    let resumed = session.resumed();
    session.quit()?;
    let arrived = names.iter().try_for_each(|name| turn.place.expect(name, turn.plan.small_len));
    names.iter().for_each(|name| turn.place.forget(name));
    arrived.map(|()| small(spent, names.len(), resumed))
}

/// A server that does not resume does other work; its rate is no figure of this row.
fn small(spent: Spent, files: usize, resumed: f64) -> Vec<Reading> {
    if resumed < 100.0 {
        let why = || Reading::Skipped(format!("resumes {resumed:.0} % of the data connections"));
        return vec![why(), Reading::Figure(resumed), why(), spent.client_busy()];
    }
    let files = float(files as u64);
    vec![
        Reading::Figure(files / spent.wall),
        Reading::Figure(resumed),
        Reading::Figure(spent.server * 1e6 / files),
        spent.client_busy(),
    ]
}

fn handshakes(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let (port, deadline) = (turn.server.port, turn.deadline());
    let meter = turn.meter();
    let until = std::time::Instant::now() + turn.plan.window;
    let counts: Vec<_> = thread::scope(|scope| {
        let one = || {
            let (mut count, mut failed) = (0_u64, 0_u64);
            while std::time::Instant::now() < until {
                // unFTP takes a hello that comes quickly for a command, now and then.
                match Session::connect_secured(port, false, deadline) {
                    Ok(_) => count += 1,
                    Err(fault) if failed > count => return Err(fault),
                    Err(_) => failed += 1,
                }
            }
            Ok::<_, Error>(count)
        };
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let spent = meter.stop_at_rest(turn.plan.limit);
    let mut all = 0;
    for count in counts {
        all += count.map_err(|_| Error::Other("a client thread died".into()))??;
    }
    let all = float(all);
    Ok(vec![Reading::Figure(all / spent.wall), Reading::Figure(spent.server * 1e6 / all), spent.client_busy()])
}

fn idle(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let before = memory::weigh(turn)?;
    let sessions: Vec<_> = (0..IDLE).map(|_| turn.secured_session()).collect::<Result<_>>()?;
    let after = memory::weigh(turn)?;
    drop(sessions);
    Ok(vec![Reading::Figure(before), Reading::Figure(after - before)])
}
