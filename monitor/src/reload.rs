//! SIGHUP and `caissonctl reload`: the new files are judged whole and the new listeners bound before anything changes.
//!
//! A file that is wrong changes nothing. Sessions go on, but for those of accounts that are gone or locked.

use std::net::SocketAddr;

use ipc::link::log::{Event, Level};
use ipc::link::{monitor_authd::ToAuthd, monitor_worker::ToWorker};
use ipc::types::{ListenerId, UserName};

use crate::config::{self, Config, Users};
use crate::listen::{self, Listening};
use crate::monitor::{Monitor, Stage};
use crate::{children, control};

/// Reloads; the error is one line, and has been logged.
pub(crate) fn reload(m: &mut Monitor) -> Result<(), String> {
    let reloaded = match m.stage {
        Stage::Starting | Stage::Stopping => Err("not while starting or stopping".to_owned()),
        Stage::Serving => config::load(&m.file).and_then(|(config, users)| swap(m, config, users)),
    };
    match &reloaded {
        Ok(()) => m.log.own(Level::Info, Event::Process, "reloaded"),
        Err(why) => m.log.own(Level::Error, Event::Process, format!("reload refused, nothing changed: {why}")),
    }
    reloaded
}

fn swap(m: &mut Monitor, mut new: Config, users: Users) -> Result<(), String> {
    let table = children::sealed_users(&users).map_err(|e| format!("memfd: {e}"))?;
    let bound = bind_new(m, &new)?;
    // Nothing below can fail.
    if new.fixed != m.config.fixed {
        let text = "workers, sandbox, programs, users of processes, control_socket and max_concurrent_password_checks change at restart only";
        m.log.own(Level::Warning, Event::Process, text);
        new.fixed = m.config.fixed.clone();
    }
    m.config = new;
    m.log.least = m.config.log_level;
    swap_listeners(m, bound);
    for worker in m.workers.values_mut() {
        worker.child.send(ToWorker::Settings(m.config.ftp.clone()), Vec::new());
    }
    if let Some(authd) = m.authd.as_mut() {
        authd.send(ToAuthd::Settings(m.config.authd), Vec::new());
        authd.send(ToAuthd::Users, vec![table]);
    }
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
        let open = |address: &SocketAddr| m.listeners.iter().any(|old| old.address == *address && old.socket.is_some());
        if let Some(address) = listen.address.filter(|address| !open(address)) {
            let socket = Some(listen::listener(address, &listen.place)?);
            bound.push(Listening { id: ListenerId(m.new_id()), address, socket });
        }
    }
    Ok(bound)
}

/// Gives workers the new listeners, and closes those not wanted any more; their sessions go on.
fn swap_listeners(m: &mut Monitor, bound: Vec<Listening>) {
    for new in &bound {
        for worker in m.workers.values_mut() {
            if let Err(e) = children::offer(&mut worker.child, new) {
                m.log.own(Level::Error, Event::Fault, format!("dup: {e}; {} lacks a listener", worker.child.name));
            }
        }
    }
    for old in &mut m.listeners {
        if !m.config.listen.iter().any(|listen| listen.address == Some(old.address)) && old.socket.take().is_some() {
            let workers = m.workers.values_mut();
            workers.for_each(|worker| worker.child.send(ToWorker::CloseListener(old.id), Vec::new()));
        }
    }
    m.listeners.extend(bound);
    // What was closed a hundred listeners ago has no sessions any more, or they do without data connections.
    let surplus = m.listeners.len().saturating_sub(100);
    let mut closed = 0..surplus;
    m.listeners.retain(|listening| listening.socket.is_some() || closed.next().is_none());
}
