//! The measurer: starts the servers, gives each its turns, and hands the figures to the report.
//!
//! Interleaved: in each row every server has one turn, then every server its next, beginning one further on each
//! time; so whatever changes on the machine meanwhile touches all of them alike.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::args::Args;
use crate::error::{Call, Error, Result};
use crate::proc;
use crate::report::{self, Book};
use crate::rows::{ROWS, Reading, Row, Turn};
use crate::servers::{Kind, Running, SERVERS};
use crate::site::Place;

/// Descriptors for the client and for each server, so that thousands of sessions fit; fewer where root may not.
const DESCRIPTORS: u64 = 65_536;
/// A server that fails so often in one row gets no further turn in it.
const PATIENCE: usize = 2;

/// Measures and reports. True when every turn could be taken.
///
/// # Errors
/// Nothing could be measured or written down at all.
pub fn main(args: &Args) -> Result<bool> {
    // The keeper blocked its signals; here, and in the servers, they must work.
    SigSet::all().thread_unblock().call(|| "unblock signals".into())?;
    // Should the keeper be killed, the rest follows it: this process, and through servers/mod.rs the servers.
    set_parent_process_death_signal(Some(Signal::TERM)).call(|| "prctl".into())?;
    raise_descriptors()?;
    let place = Place::find(&args.peers, &args.programs)?;
    let mut bench = Bench { args, book: Book::new(args), kinds: present(args, &place), place };
    for kind in selected(args) {
        match (kind.missing)(&bench.place) {
            Some(why) => bench.book.absent(kind, &why),
            None => bench.book.version(kind, &(kind.version)(&bench.place)),
        }
    }
    if bench.kinds.is_empty() {
        return Err(Error::Other("none of the servers is there".into()));
    }
    bench.place.fill(&args.plan)?;
    bench.together(false)?;
    bench.together(true)?;
    bench.alone();
    report::publish(args, &bench.book)?;
    Ok(bench.book.faults.is_empty())
}

struct Bench<'a> {
    args: &'a Args,
    place: Place,
    kinds: Vec<&'static Kind>,
    book: Book,
}

impl Bench<'_> {
    /// The rows for which all servers run side by side: those without TLS, and those with it.
    fn together(&mut self, secured: bool) -> Result<()> {
        let rows: Vec<_> = rows(self.args).filter(|row| row.alone.is_none() && row.secured == secured).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let kinds: Vec<_> = self.kinds.iter().copied().filter(|kind| speaks(kind, secured)).collect();
        let mut fleet: Vec<Option<Running>> = Vec::new();
        for kind in kinds {
            let started = self.start(kind, secured);
            fleet.push(started);
        }
        if fleet.iter().all(Option::is_none) {
            return Err(Error::Other("no server could be started".into()));
        }
        for row in rows {
            let mut failures = vec![0; fleet.len()];
            for run in 0..row.turns.of(self.args.plan.runs) {
                for step in 0..fleet.len() {
                    let index = (step + run) % fleet.len();
                    let Some(server) = fleet[index].as_ref().filter(|_| failures[index] < PATIENCE) else { continue };
                    if server.kind.only.is_some_and(|only| only != row.name) {
                        continue;
                    }
                    if !self.turn(row, run, server) {
                        failures[index] += 1;
                        let kind = server.kind;
                        // Whatever state it is in, the next turn begins with a fresh one.
                        fleet[index] = None;
                        fleet[index] = self.start(kind, secured);
                    }
                }
            }
        }
        Ok(())
    }

    /// The rows for which a server is started afresh each time and has the machine to itself.
    fn alone(&mut self) {
        for (row, sessions) in rows(self.args).filter_map(|row| row.alone.map(|sessions| (row, sessions))) {
            for run in 0..row.turns.of(self.args.plan.runs) {
                for kind in self.kinds.clone() {
                    if !speaks(kind, row.secured) || kind.only.is_some_and(|only| only != row.name) {
                        continue;
                    }
                    if kind.idle_most < sessions {
                        self.book.enter(
                            row,
                            kind,
                            run,
                            &vec![Reading::Skipped(kind.idle_reason.into()); row.metrics.len()],
                        );
                    } else if let Some(server) = self.launch(kind, row.secured) {
                        self.turn(row, run, &server);
                    }
                }
            }
        }
    }

    /// Starts a server and lets its user in once, so that nothing that happens only once is measured.
    fn start(&mut self, kind: &'static Kind, secured: bool) -> Option<Running> {
        let server = self.launch(kind, secured)?;
        if kind.only.is_some() {
            return Some(server);
        }
        let turn = Turn { plan: &self.args.plan, place: &self.place, server: &server };
        match turn.session().and_then(crate::client::Session::quit) {
            Ok(()) => Some(server),
            Err(fault) => {
                self.book.fault(&format!("{}: first login: {fault}", kind.name));
                None
            }
        }
    }

    fn launch(&mut self, kind: &'static Kind, secured: bool) -> Option<Running> {
        Running::start(kind, &self.place, secured).map_err(|fault| self.book.fault(&fault.to_string())).ok()
    }

    fn turn(&mut self, row: &'static Row, run: usize, server: &Running) -> bool {
        let turn = Turn { plan: &self.args.plan, place: &self.place, server };
        let result = (row.run)(&turn);
        proc::settle(server.pid(), Duration::from_secs(3));
        match result {
            Ok(readings) => {
                self.book.enter(row, server.kind, run, &readings);
                true
            }
            Err(fault) => {
                self.book.fault(&format!("{}, {}, run {}: {fault}", server.kind.name, row.name, run + 1));
                false
            }
        }
    }
}

fn speaks(kind: &Kind, secured: bool) -> bool {
    if secured { kind.speaks.1 } else { kind.speaks.0 }
}

fn raise_descriptors() -> Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).call(|| "getrlimit".into())?;
    setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, hard.max(DESCRIPTORS))
        .or_else(|_| setrlimit(Resource::RLIMIT_NOFILE, hard, hard))
        .call(|| "raise RLIMIT_NOFILE".into())
}

fn selected(args: &Args) -> impl Iterator<Item = &'static Kind> {
    SERVERS.iter().filter(|k| args.servers.is_empty() || args.servers.iter().any(|n| n == k.name))
}

fn present(args: &Args, place: &Place) -> Vec<&'static Kind> {
    selected(args).filter(|kind| (kind.missing)(place).is_none()).collect()
}

fn rows(args: &Args) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(|r| args.only.is_empty() || args.only.iter().any(|n| n == r.name))
}
