//! Repeat logins: connect, USER, PASS, QUIT, over and over, by a user who has logged in before.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::{Better, Metric, Reading, Row, Turn, Turns, float};
use crate::client::Session;
use crate::error::{Error, Result};
use crate::site::USER;

pub(super) const SEQUENTIAL: Row = Row {
    name: "login",
    what: "connect, USER, PASS, QUIT, one after another",
    metrics: &[
        Metric { id: "login", what: "repeat logins", unit: "logins/s", better: Better::Higher },
        Metric { id: "login-cpu", what: "server CPU, a login", unit: "µs", better: Better::Lower },
        Metric { id: "login-client", what: "client CPU, logins", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Planned,
    run: |turn| run(turn, 1),
};

pub(super) const CONCURRENT: Row = Row {
    name: "login-32",
    what: "connect, USER, PASS, QUIT, by 32 clients at once",
    metrics: &[
        Metric { id: "login-32", what: "repeat logins, 32 clients", unit: "logins/s", better: Better::Higher },
        Metric { id: "login-32-cpu", what: "server CPU, a login of 32", unit: "µs", better: Better::Lower },
        Metric { id: "login-32-client", what: "client CPU, 32 clients", unit: "% busy", better: Better::Neither },
    ],
    alone: None,
    secured: false,
    turns: Turns::Planned,
    run: |turn| run(turn, 32),
};

fn run(turn: &Turn<'_>, clients: usize) -> Result<Vec<Reading>> {
    // The first login may cost a password check; repeat logins are what is asked for.
    login(turn, turn.deadline())?;
    let over = AtomicBool::new(false);
    let count = AtomicU64::new(0);
    let deadline = turn.deadline();
    let meter = turn.meter();
    let ended: Vec<_> = thread::scope(|scope| {
        let one = || {
            while !over.load(Ordering::Relaxed) {
                login(turn, deadline)?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(one)).collect();
        thread::sleep(turn.plan.window);
        over.store(true, Ordering::Relaxed);
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let spent = meter.stop_at_rest(turn.plan.limit);
    for result in ended {
        result.map_err(|_| Error::Other("a client thread died".into()))??;
    }
    let logins = float(count.into_inner());
    Ok(vec![Reading::Figure(logins / spent.wall), Reading::Figure(spent.server * 1e6 / logins), spent.client_busy()])
}

fn login(turn: &Turn<'_>, deadline: Instant) -> Result<()> {
    let mut session = Session::connect(turn.server.port, deadline)?;
    session.enter(USER, &turn.place.password)?;
    session.quit()
}
