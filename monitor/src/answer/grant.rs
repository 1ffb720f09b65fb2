//! Answers `Grant`: gives a worker its link to the broker of a vouched session's account.
//!
//! Runs as root. Reads from: authd (a name), never from the worker whose session it is. Trusts: the user table, for uid, groups,
//! home and permissions. Holds: one broker per account, for the account's home, never a path chosen by a client.
//! A broker that is still starting keeps its grants waiting; nobody else waits.
//! Not here: walking paths (monitor/broker/src/resolve.rs).

use ipc::link::log::{Event, Level};
use ipc::link::monitor_worker::{Granted, ToWorker};
use ipc::link::{monitor_authd::Grant, monitor_broker::ToBroker};
use ipc::types::{BrokerId, SessionId, WorkerId};

use super::session_ended::release;
use crate::children::link;
use crate::monitor::{Broker, Monitor, Stage};
use crate::table::Standing;

pub(crate) fn answer_grant(m: &mut Monitor, grant: Grant) {
    let id = grant.worker;
    // A worker that died meanwhile has no sessions; one that has not said Ready can have none.
    let Some(worker) = m.workers.get(&id).filter(|worker| worker.child.ready) else { return };
    if worker.sessions.get(grant.session).is_some() {
        return m.end_worker(id, "asked authd twice about one session");
    }
    let admitted = admit(m, &grant).and_then(|()| find_broker(m, &grant));
    let Some(worker) = m.workers.get_mut(&id) else { return };
    match admitted {
        Ok(broker) => {
            worker.sessions.vouch(grant.session, broker);
            if m.brokers.get(&broker).is_some_and(|broker| broker.child.ready) {
                hand_over(m, id, grant.session, broker);
            }
        }
        Err(why) => {
            worker.withdraw(grant.session);
            let (process, session) = (&worker.child.name, grant.session);
            let text = format!("process=\"{process}\" session={session} user=\"{}\" reason=\"{why}\"", grant.user);
            m.log.own(Level::Warning, Event::Refused, text);
        }
    }
}

/// A broker has said `Ready`: what waited for it goes out.
pub(crate) fn grant_waiting(m: &mut Monitor, broker: BrokerId) {
    let workers: Vec<WorkerId> = m.workers.keys().copied().collect();
    for id in workers {
        let sessions = m.workers.get(&id).map(|worker| worker.sessions.of(broker)).unwrap_or_default();
        for (session, _) in sessions.into_iter().filter(|(_, so_far)| *so_far == Standing::Waiting) {
            hand_over(m, id, session, broker);
        }
    }
}

/// Whether the limits allow another session.
fn admit(m: &Monitor, grant: &Grant) -> Result<(), String> {
    let room = |name, so_far: usize, most: u32| {
        if so_far < most as usize { Ok(()) } else { Err(format!("{name} reached ({so_far})")) }
    };
    let of_account = m.brokers.iter().filter(|(_, broker)| broker.account == grant.user);
    let of_account = of_account.map(|(&id, _)| sessions_of(m, id)).sum();
    room("max_sessions", m.workers.values().map(|worker| worker.sessions.len()).sum(), m.config.max_sessions)?;
    room("max_sessions_per_account", of_account, m.config.max_sessions_per_account)
}

/// The account's broker, started if there is none.
fn find_broker(m: &mut Monitor, grant: &Grant) -> Result<BrokerId, String> {
    if m.stage == Stage::Stopping {
        return Err("stopping".to_owned());
    }
    let user = m.users.get(&grant.user).filter(|user| !user.locked).cloned();
    let user = user.ok_or("authd and the monitor do not hold the same user table now")?;
    // After a reload, an account for which something has changed gets a new broker for its new sessions.
    let settings = (user, m.config.brokers.clone());
    let same = |broker: &Broker| broker.account == grant.user && broker.settings == settings && !broker.stopping;
    if let Some((&id, broker)) = m.brokers.iter().find(|(_, broker)| same(broker)) {
        // One that has been killed and does not die hangs at a disk, and so would the next.
        return broker.child.reason.as_ref().map_or(Ok(id), |why| Err(format!("{}: {why}", broker.child.name)));
    }
    m.start_broker(grant.user.clone(), settings).map_err(|e| format!("no broker: {e}"))
}

/// Tells a worker of its session's broker; with a link, if it has none.
fn hand_over(m: &mut Monitor, id: WorkerId, session: SessionId, broker_id: BrokerId) {
    let (Some(worker), Some(broker)) = (m.workers.get_mut(&id), m.brokers.get_mut(&broker_id)) else { return };
    let mut ends = Vec::new();
    if !worker.links.contains(&broker_id) {
        let Ok((end_of_broker, end_of_worker)) = link() else {
            m.log.own(Level::Error, Event::Fault, "socketpair: no descriptors or no memory");
            worker.withdraw(session);
            return release(m, id, broker_id, false);
        };
        broker.child.send(ToBroker::AddWorker(id), vec![end_of_broker]);
        ends.push(end_of_worker);
        worker.links.insert(broker_id);
    }
    worker.sessions.granted(session);
    let tls_required = broker.settings.0.tls_required;
    worker.child.send(ToWorker::Granted(Granted { session, broker: broker_id, tls_required }), ends);
}

/// How many sessions a broker has on all workers.
pub(crate) fn sessions_of(m: &Monitor, broker: BrokerId) -> usize {
    m.workers.values().map(|worker| worker.sessions.count(broker)).sum()
}
