//! 300 clients at once: all log in, then all RETR 10 MiB, then all STOR 10 MiB, then all QUIT.
//!
//! The table of pyftpdlib's benchmarks. A step begins when every client has done the one before, and its time ends
//! with the last client. A step in which clients were lost has no time, for fewer clients are done sooner. Who was lost
//! at the login is replaced, a few at a time, so that the other steps can be compared.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use super::{Better, Metric, Reading, Row, Turn, Turns, float};
use crate::client::{Session, source};
use crate::crowd::{Crowd, Job, stored_name};
use crate::error::{Error, Result};
use crate::plan::MIB;
use crate::site::USER;

pub(super) const ROW: Row = Row {
    name: "clients",
    what: "300 clients at once: log in; RETR 10 MiB each; STOR 10 MiB each; QUIT",
    metrics: &[
        Metric { id: "clients-lost", what: "clients lost of 300", unit: "clients", better: Better::Lower },
        Metric { id: "clients-login", what: "300 clients log in", unit: "s", better: Better::Lower },
        Metric { id: "clients-retr", what: "300 clients RETR", unit: "s", better: Better::Lower },
        Metric { id: "clients-stor", what: "300 clients STOR", unit: "s", better: Better::Lower },
        Metric { id: "clients-quit", what: "300 clients QUIT", unit: "s", better: Better::Lower },
        Metric { id: "clients-cpu", what: "server CPU, all four", unit: "s", better: Better::Lower },
        Metric { id: "clients-client", what: "client CPU, all four", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Planned,
    run,
};

/// Whoever is not let in by then is lost: a SYN that was dropped is sent again after 1 and 3 seconds (tcp(7)).
const LOGIN_LIMIT: Duration = Duration::from_secs(5);
/// Clients that replace lost ones, at a time.
const FEW: usize = 4;
/// Threads of the client.
const THREADS: usize = 2;
/// What must stay free beside the uploads, bytes.
const SPARE: u64 = 1024 * MIB;

fn run(turn: &Turn<'_>) -> Result<Vec<Reading>> {
    let needed = turn.plan.crowd as u64 * turn.plan.crowd_len + SPARE;
    let room = turn.place.room()?;
    if room < needed {
        let why = format!("needs {} MiB of memory in /dev/shm, {} are free", needed / MIB, room / MIB);
        return Ok(vec![Reading::Skipped(why); ROW.metrics.len()]);
    }
    // Whoever has logged in before, does so again: the first password check is not what is asked for.
    turn.session().and_then(Session::quit)?;
    forget(turn);
    let file = source(&turn.place.data.join("crowd.bin"))?;
    let result = steps(turn, &file);
    forget(turn);
    result
}

fn steps(turn: &Turn<'_>, file: &File) -> Result<Vec<Reading>> {
    let len = turn.plan.crowd_len;
    let share = turn.plan.crowd.div_ceil(THREADS);
    let mut crowds = (0..THREADS)
        .map(|n| Crowd::new(n * share, share.min(turn.plan.crowd - n * share)))
        .collect::<Result<Vec<_>>>()?;
    let meter = turn.meter();
    let mut readings = Vec::new();
    let mut lost = 0;
    let login = Job::Login { port: turn.server.port, user: USER, password: &turn.place.password };
    for job in [login, Job::Retr { name: "crowd.bin", len }, Job::Stor { source: file, len }, Job::Quit] {
        let is_login = matches!(job, Job::Login { .. });
        let deadline = if is_login { Instant::now() + LOGIN_LIMIT } else { turn.deadline() };
        let seconds = all(&mut crowds, &job, deadline)?;
        let fault = crowds.iter_mut().filter_map(|c| c.fault.take()).last();
        let lost_now = crowds.iter().map(|c| c.lost).sum::<usize>() - lost;
        lost += lost_now;
        readings.push(match fault {
            None => Reading::Figure(seconds),
            Some(fault) => Reading::Skipped(format!("{lost_now} of {} clients lost: {fault}", turn.plan.crowd)),
        });
        if is_login {
            crowds.iter_mut().try_for_each(|c| c.replace_lost(&login, FEW, turn.deadline()))?;
        }
        if matches!(job, Job::Stor { .. }) && lost_now == 0 {
            (0..turn.plan.crowd).try_for_each(|n| turn.place.expect(&stored_name(n), len))?;
        }
    }
    let spent = meter.stop_at_rest(turn.plan.limit);
    readings.insert(0, Reading::Figure(float(lost as u64)));
    readings.extend([Reading::Figure(spent.server), spent.client_busy()]);
    Ok(readings)
}

/// Has all clients do one job; the seconds until the last one has done it.
fn all(crowds: &mut [Crowd], job: &Job<'_>, deadline: Instant) -> Result<f64> {
    let began = Instant::now();
    let ended: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = crowds.iter_mut().map(|crowd| scope.spawn(move || crowd.run(job, deadline))).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    for result in ended {
        result.map_err(|_| Error::Other("a client thread died".into()))??;
    }
    Ok(seconds)
}

fn forget(turn: &Turn<'_>) {
    (0..turn.plan.crowd).for_each(|number| turn.place.forget(&stored_name(number)));
}
