//! A child's death: who died, why, what dies with it, and what is started again; and the orderly end of all.
//!
//! The first death of a process is made good at once; one that dies again soon waits, twice as long each time.

use std::time::Duration;

use ipc::Record;
use ipc::link::log::{Event, Level};
use ipc::link::{monitor_authd::ToAuthd, monitor_broker::ToBroker, monitor_worker::ToWorker};
use ipc::types::{BrokerId, WorkerId};
use rustix::process::{WaitOptions, WaitStatus, waitpid};

use crate::monitor::{Monitor, Stage};
use crate::{answer, notify, reload, spawn::Child, timer::Alarm};

/// A process that lived this long has not died "again".
const LONG_LIFE: Duration = Duration::from_secs(10);
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long children have to stop, and then to die.
const STOP: Duration = Duration::from_secs(5);

/// Collects every child that has died.
pub(crate) fn reap(m: &mut Monitor) {
    while let Ok(Some((pid, status))) = waitpid(None, WaitOptions::NOHANG) {
        let worker = m.workers.iter().find(|(_, worker)| worker.child.pid == pid).map(|(&id, _)| id);
        let broker = m.brokers.iter().find(|(_, broker)| broker.child.pid == pid).map(|(&id, _)| id);
        if let Some(id) = worker {
            worker_died(m, id, status);
        } else if let Some(id) = broker {
            broker_died(m, id, status);
        } else if m.authd.as_ref().is_some_and(|authd| authd.pid == pid) {
            authd_died(m, status);
        } else if m.reloads.reading.as_ref().is_some_and(|reading| reading.child.pid == pid) {
            reload::died(m, status);
        }
    }
    if m.stage == Stage::Stopping && m.workers.is_empty() {
        m.authd.iter_mut().for_each(|authd| authd.send(ToAuthd::Stop, Vec::new()));
        m.brokers.values_mut().for_each(|broker| broker.child.send(ToBroker::Stop, Vec::new()));
    }
}

fn worker_died(m: &mut Monitor, id: WorkerId, status: WaitStatus) {
    m.hear_worker(id);
    let Some(mut worker) = m.workers.remove(&id) else { return };
    m.authd.iter_mut().for_each(|authd| authd.send(ToAuthd::DropWorker(id), Vec::new()));
    for broker in worker.sessions.brokers() {
        answer::session_ended::release(m, id, broker, worker.links.contains(&broker));
    }
    if let Err(e) = m.ledger.clear(worker.slot) {
        m.log.own(Level::Error, Event::Fault, format!("fallocate: {e}; max_sessions counts its dead connections"));
    }
    let obituary = obituary(&mut worker.child, status, worker.sessions.len());
    again(m, worker.slot, &worker.child, &obituary);
}

fn authd_died(m: &mut Monitor, status: WaitStatus) {
    m.hear_authd();
    let Some(mut authd) = m.authd.take() else { return };
    let obituary = obituary(&mut authd, status, 0);
    again(m, 0, &authd, &obituary);
}

/// Nothing is started: the next login of the account does that.
fn broker_died(m: &mut Monitor, id: BrokerId, status: WaitStatus) {
    m.hear_broker(id);
    let Some(mut broker) = m.brokers.remove(&id) else { return };
    let mut lost = 0;
    for worker in m.workers.values_mut() {
        lost += worker.sessions.count(id);
        worker.links.remove(&id);
        worker.sessions.lose(id).into_iter().for_each(|session| worker.withdraw(session));
    }
    if m.stage != Stage::Stopping && (!broker.stopping || lost > 0) {
        m.log.own(Level::Error, Event::Process, obituary(&mut broker.child, status, lost));
    }
}

/// How a child ended, in words of the log.
pub(crate) fn obituary(child: &mut Child<impl Record, impl Record>, status: WaitStatus, sessions: usize) -> String {
    let how = match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, status) => format!("exit status {}", status.unwrap_or(-1)),
    };
    let reason = child.reason.as_ref().map_or_else(String::new, |why| format!(" reason=\"{why}\""));
    let (pid, said) = (child.pid.as_raw_pid(), child.last_words());
    format!("died process=\"{}\" pid={pid} how=\"{how}\" sessions={sessions}{reason} said=\"{said}\"", child.name)
}

/// Starts authd or a worker again, at once if it is the first time; while all are starting, that ends the start instead.
fn again(m: &mut Monitor, slot: usize, dead: &Child<impl Record, impl Record>, obituary: &str) {
    match m.stage {
        Stage::Starting => {
            let why = dead.reason.clone().unwrap_or_else(|| obituary.to_owned());
            m.failure.get_or_insert_with(|| format!("{} cannot start: {why}", dead.name));
        }
        Stage::Stopping => {}
        Stage::Serving => {
            m.log.own(Level::Error, Event::Process, obituary);
            let Some(deaths) = m.deaths.get_mut(slot) else { return };
            *deaths = if dead.started.elapsed() < LONG_LIFE { deaths.saturating_add(1) } else { 1 };
            match back_off(*deaths) {
                Duration::ZERO => m.respawn(slot),
                wait => m.timers.set(wait, Alarm::Respawn(slot)),
            }
        }
    }
}

fn back_off(deaths: u32) -> Duration {
    match deaths {
        0 | 1 => Duration::ZERO,
        again => FIRST_WAIT.saturating_mul(1 << (again - 2).min(16)).min(LONGEST_WAIT),
    }
}

/// Tells workers to tell their sessions, then everybody to stop. A second request does not wait.
pub(crate) fn stop(m: &mut Monitor) {
    if m.stage == Stage::Stopping {
        return kill_everybody(m, "was told twice to stop");
    }
    m.stage = Stage::Stopping;
    notify::send("STOPPING=1");
    m.log.own(Level::Info, Event::Process, "stopping");
    m.workers.values_mut().for_each(|worker| worker.child.send(ToWorker::Stop, Vec::new()));
    m.timers.set(STOP, Alarm::StopOver);
    reap(m);
}

/// Kills what is left.
pub(crate) fn kill_everybody(m: &mut Monitor, why: &str) {
    m.reloads.reading.iter_mut().for_each(|reading| reading.child.kill(why));
    m.authd.iter_mut().for_each(|authd| authd.kill(why));
    m.workers.values_mut().for_each(|worker| worker.child.kill(why));
    m.brokers.values_mut().for_each(|broker| broker.child.kill(why));
    m.timers.set(STOP, Alarm::DieOver);
}

/// Whether no child is left.
pub(crate) fn nobody_left(m: &Monitor) -> bool {
    m.authd.is_none() && m.workers.is_empty() && m.brokers.is_empty() && m.reloads.reading.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_death_is_made_good_at_once_and_later_ones_wait_longer_up_to_a_limit() {
        assert_eq!(back_off(1), Duration::ZERO);
        assert_eq!(back_off(2), FIRST_WAIT);
        assert_eq!(back_off(4), FIRST_WAIT * 4);
        assert_eq!(back_off(u32::MAX), LONGEST_WAIT);
    }
}
