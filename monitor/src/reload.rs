//! SIGHUP and `caissonctl reload`: the new files are judged whole and the new listeners bound before anything changes.
//!
//! A file that is wrong changes nothing. Sessions go on, but for those of accounts that are gone or locked.
//! Files are read by caisson-config (config.rs), one reading at a time, and nobody waits for it but who asked. The start reads
//! in the same way.

use std::time::Duration;

use ipc::link::log::{Event, Level};
use ipc::link::monitor_config::{Config, WARNINGS};
use ipc::link::{monitor_authd::ToAuthd, monitor_worker::ToWorker};
use ipc::types::{ListenerId, UserName};
use rustix::process::WaitStatus;

use crate::config::{self, ConfigChild, Fresh, Outcome};
use crate::listen::{self, Listening};
use crate::monitor::{Monitor, Stage};
use crate::{certificates, children, control, reap, timer::Alarm};

/// How long caisson-config may take.
const READING: Duration = Duration::from_secs(10);

/// What is being read, and who waits for what.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    /// One at a time.
    pub reading: Option<Reading>,
    /// Somebody asked meanwhile, when the files may have been read already: once more, for these clients.
    again: Option<Vec<u32>>,
    /// What the start waits for.
    pub first: Option<Outcome>,
}

/// caisson-config at work, until it has been reaped.
#[derive(Debug)]
pub(crate) struct Reading {
    /// What epoll calls its link.
    pub id: u32,
    pub child: ConfigChild,
    outcome: Option<Outcome>,
    /// Clients of the control socket that wait for it.
    clients: Vec<u32>,
}

impl Reading {
    /// Nothing more is wanted of it.
    fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
        self.child.kill("is done");
    }
}

impl Reloads {
    /// The reading of this number, if it is not over.
    pub fn reading(&mut self, id: u32) -> Option<&mut Reading> {
        self.reading.as_mut().filter(|reading| reading.id == id)
    }
}

/// Reads the configuration, and takes it over if it is right; `client` of the control socket is told.
pub(crate) fn ask(m: &mut Monitor, client: Option<u32>) {
    m.reloads.again.get_or_insert_default().extend(client);
    next(m);
}

/// Reads for those who asked meanwhile. Once the start has what it waited for, they wait until everybody is ready.
pub(crate) fn next(m: &mut Monitor) {
    if m.reloads.reading.is_some() || m.asked.is_some() || (m.stage == Stage::Starting && m.hashes.is_some()) {
        return;
    }
    let Some(clients) = m.reloads.again.take() else { return };
    let id = m.new_id();
    match config::start(m, id) {
        Ok(child) => {
            m.reloads.reading = Some(Reading { id, child, outcome: None, clients });
            m.timers.set(READING, Alarm::ReadingLate(id));
        }
        Err(why) => finish(m, clients, Err(why)),
    }
}

/// caisson-config has said something.
pub(crate) fn hear(reading: &mut Reading) {
    if let Some(outcome) = config::hear(&mut reading.child) {
        reading.end(outcome);
    }
}

/// caisson-config had its time.
pub(crate) fn late(reading: &mut Reading) {
    reading.end(Err(format!("caisson-config did not answer within {} seconds", READING.as_secs())));
}

/// caisson-config has died; its last word may be unread.
pub(crate) fn died(m: &mut Monitor, status: WaitStatus) {
    let Some(mut reading) = m.reloads.reading.take() else { return };
    hear(&mut reading);
    let outcome = reading.outcome.unwrap_or_else(|| {
        Err(format!("caisson-config did not finish: {}", reap::obituary(&mut reading.child, status, 0)))
    });
    finish(m, reading.clients, outcome);
}

fn finish(m: &mut Monitor, clients: Vec<u32>, outcome: Outcome) {
    match (m.stage, outcome) {
        (Stage::Starting, outcome) => m.reloads.first = Some(outcome),
        (Stage::Serving, Ok(fresh)) => certificates::ask(m, Some(fresh), clients),
        (_, outcome) => tell(m, &clients, outcome.and(Err("stopping".to_owned()))),
    }
}

/// Tells those who wait for a reload what it came to.
pub(crate) fn tell(m: &mut Monitor, clients: &[u32], done: Result<(), String>) {
    match &done {
        Ok(()) => m.log.own(Level::Info, Event::Process, "reloaded"),
        Err(why) => m.log.own(Level::Error, Event::Process, format!("reload refused, nothing changed: {why}")),
    }
    let (line, done) = done.map_or_else(|why| (why, false), |()| ("reloaded".to_owned(), true));
    clients.iter().for_each(|&client| control::tell(m, client, std::slice::from_ref(&line), done));
    next(m);
}

/// Takes a configuration over: also the first one, when there is nobody yet to be told.
pub(crate) fn swap(m: &mut Monitor, fresh: Fresh) -> Result<(), String> {
    let Fresh { config: mut new, users, hashes, weaker, warnings } = fresh;
    let table = hashes.try_clone().map_err(|e| format!("dup: {e}"))?;
    let bound = bind_new(m, &new)?;
    // Nothing below can fail.
    if m.stage == Stage::Serving && new.fixed != m.config.fixed {
        let text = "workers, sandbox, programs, users of processes, control_socket and max_concurrent_password_checks change at restart only";
        m.log.own(Level::Warning, Event::Process, text);
        new.fixed = m.config.fixed.clone();
    }
    m.config = new;
    m.hashes = Some(hashes);
    m.log.least = m.config.log_level;
    m.log.note_weaker(&weaker);
    warnings.iter().take(WARNINGS).for_each(|w| m.log.own(Level::Warning, Event::Process, w.to_string()));
    // Before the workers: a client that sees the new banner finds the new accounts.
    if let Some(authd) = m.authd.as_mut() {
        authd.send(ToAuthd::Settings(m.config.authd), Vec::new());
        authd.send(ToAuthd::Users, vec![table]);
    }
    swap_listeners(m, bound);
    let served: Vec<UserName> = m.brokers.values().map(|broker| broker.account.clone()).collect();
    for account in served.iter().filter(|name| users.get(*name).is_none_or(|user| user.locked)) {
        control::kick(m, account);
    }
    m.users = users;
    Ok(())
}

/// Binds what the new configuration wants and is not open.
fn bind_new(m: &mut Monitor, new: &Config) -> Result<Vec<Listening>, String> {
    let mut bound = Vec::new();
    for listen in &new.listen {
        if !m.listeners.iter().any(|old| old.address == listen.address && old.socket.is_some()) {
            let place = format!("{}:{}:{}", m.file.display(), listen.place.0, listen.place.1);
            let socket = Some(listen::listener(listen.address, &place)?);
            let id = ListenerId(m.new_id());
            bound.push(Listening { id, address: listen.address, proxied: listen.proxied, socket });
        }
    }
    Ok(bound)
}

/// Has workers close the listeners not wanted any more, and gives them the settings and the new listeners; sessions go on.
///
/// In this order, so that nobody is accepted under settings that are not about that listener: whether it is for proxies, say.
fn swap_listeners(m: &mut Monitor, bound: Vec<Listening>) {
    for old in &mut m.listeners {
        old.proxied |= m.config.listen.iter().any(|listen| listen.proxied && listen.address == old.address);
        if !m.config.listen.iter().any(|listen| listen.address == old.address) && old.socket.take().is_some() {
            let workers = m.workers.values_mut();
            workers.for_each(|worker| worker.child.send(ToWorker::CloseListener(old.id), Vec::new()));
        }
    }
    for worker in m.workers.values_mut() {
        worker.child.send(ToWorker::Settings(m.config.workers.clone()), Vec::new());
        for new in &bound {
            if let Err(e) = children::offer(&mut worker.child, new) {
                m.log.own(Level::Error, Event::Fault, format!("dup: {e}; {} lacks a listener", worker.child.name));
            }
        }
    }
    m.listeners.extend(bound);
    // What was closed a hundred listeners ago has no sessions any more, or they do without data connections.
    let surplus = m.listeners.len().saturating_sub(100);
    let mut closed = 0..surplus;
    m.listeners.retain(|listening| listening.socket.is_some() || closed.next().is_none());
}
