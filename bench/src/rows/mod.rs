//! What is measured: a file a row, one table, and the meter they share.
//!
//! A row is one thing a client does; it yields several figures (rate, CPU of the server, CPU of the client).
//! A new row is a file and a line in `ROWS`.

mod beside;
mod bulk;
mod clients;
mod connections;
mod listing;
mod logins;
mod memory;
mod noop;
mod parallel;
mod respawn;
mod secured;
mod silent;
mod small;

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::client::Session;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::proc;
use crate::servers::Running;
use crate::site::{Place, USER};

/// In the order in which they are measured. Rows that want a server to themselves come last.
pub const ROWS: &[Row] = &[
    bulk::DOWNLOAD,
    bulk::UPLOAD,
    parallel::ROW,
    small::DOWN,
    small::UP,
    logins::SEQUENTIAL,
    logins::CONCURRENT,
    connections::ROW,
    listing::LIST,
    listing::MLSD,
    noop::ROW,
    clients::ROW,
    memory::ROW,
    beside::ROW,
    silent::ROW,
    respawn::ROW,
    secured::DOWNLOAD,
    secured::UPLOAD,
    secured::SMALL_DOWN,
    secured::SMALL_UP,
    secured::HANDSHAKES,
    secured::MEMORY,
];

/// How many turns each server gets in a row.
#[derive(Debug, Clone, Copy)]
pub enum Turns {
    /// As many as the plan has.
    Planned,
    /// No more than so many: each takes long.
    AtMost(usize),
    /// So many times the plan's: each is over in a moment, and one moment is not like the next.
    Times(usize),
}

impl Turns {
    /// Their number under a plan of so many.
    pub fn of(self, planned: usize) -> usize {
        match self {
            Turns::Planned => planned,
            Turns::AtMost(most) => planned.min(most),
            Turns::Times(factor) => planned * factor,
        }
    }
}

/// One thing that is measured.
#[derive(Debug)]
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// What the client does.
    pub what: &'static str,
    /// The figures a turn yields, in this order.
    pub metrics: &'static [Metric],
    /// Where given, the server is freshly started and no other one runs beside it; a server that is not asked to hold
    /// so many sessions is left out.
    pub alone: Option<usize>,
    /// Under TLS: the servers are started with a certificate.
    pub secured: bool,
    /// How many turns each server gets.
    pub turns: Turns,
    /// One turn.
    pub run: fn(&Turn<'_>) -> Result<Vec<Reading>>,
}

/// One figure.
#[derive(Debug)]
pub struct Metric {
    /// Its name in the results and in the bars; unique.
    pub id: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// A rate.
    Higher,
    /// A cost.
    Lower,
    /// No merit in it: it tells how far the client may have been the limit.
    Neither,
}

/// What a turn says about one metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// A figure in the metric's unit.
    Figure(f64),
    /// Not measured, and why.
    Skipped(String),
}

/// What a row needs for one turn.
#[derive(Debug)]
pub struct Turn<'a> {
    /// Sizes and limits.
    pub plan: &'a Plan,
    /// Files, user, password.
    pub place: &'a Place,
    /// Whose turn it is.
    pub server: &'a Running,
}

impl Turn<'_> {
    /// The end of a timed section that begins now.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.plan.limit
    }

    /// A logged-in session, TYPE I.
    ///
    /// # Errors
    /// The server does not let the user in.
    pub fn session(&self) -> Result<Session> {
        let mut session = Session::connect(self.server.port, self.deadline())?;
        session.login(USER, &self.place.password)?;
        Ok(session)
    }

    /// The same under TLS, with data connections that are under TLS and resume.
    ///
    /// # Errors
    /// The server does not let the user in, or has no TLS.
    pub fn secured_session(&self) -> Result<Session> {
        let mut session = Session::connect_secured(self.server.port, true, self.deadline())?;
        session.login(USER, &self.place.password)?;
        session.protect()?;
        Ok(session)
    }

    /// Starts the clocks.
    pub fn meter(&self) -> Meter {
        let root = self.server.pid();
        let (server, client) = (proc::cpu(root), own_cpu());
        Meter { root, server, client, began: Instant::now() }
    }
}

/// Clocks that run.
#[derive(Debug)]
pub struct Meter {
    root: u32,
    server: Duration,
    client: Duration,
    began: Instant,
}

/// What the clocks said in the end.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// Seconds on the wall.
    pub wall: f64,
    /// CPU seconds of the server's whole tree.
    pub server: f64,
    /// CPU seconds of the client.
    pub client: f64,
}

impl Meter {
    /// Seconds since the clocks were started.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Stops the clocks.
    pub fn stop(self) -> Spent {
        let wall = self.began.elapsed().as_secs_f64();
        let client = own_cpu().saturating_sub(self.client).as_secs_f64();
        let server = proc::cpu(self.root).saturating_sub(self.server).as_secs_f64();
        Spent { wall, server, client }
    }

    /// Stops the clocks, but the server's only once it has come to rest: taking a session down belongs to its cost.
    pub fn stop_at_rest(self, limit: Duration) -> Spent {
        let wall = self.began.elapsed().as_secs_f64();
        let client = own_cpu().saturating_sub(self.client).as_secs_f64();
        proc::settle(self.root, limit);
        Spent { wall, client, ..self.stop() }
    }
}

impl Spent {
    /// The client's share of its time on a CPU, in per cent: near 100, it was the limit.
    pub fn client_busy(&self) -> Reading {
        Reading::Figure(100.0 * self.client / self.wall)
    }
}

/// Finds a metric by name, with its row.
pub fn metric(id: &str) -> Option<(&'static Row, &'static Metric)> {
    ROWS.iter().find_map(|row| row.metrics.iter().find(|m| m.id == id).map(|m| (row, m)))
}

/// Refuses names that are in no table.
///
/// # Errors
/// An unknown name; the error lists those that are known.
pub fn check_names(names: &[String]) -> Result<()> {
    let known: Vec<_> = ROWS.iter().map(|r| r.name).collect();
    match names.iter().find(|n| !known.contains(&n.as_str())) {
        Some(name) => Err(Error::Other(format!("--only {name}: expected some of {}", known.join(",")))),
        None => Ok(()),
    }
}

fn own_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

#[allow(clippy::cast_precision_loss, reason = "figures are rounded to four digits anyway")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        let mut ids: Vec<_> = ROWS.iter().flat_map(|r| r.metrics).map(|m| m.id).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
