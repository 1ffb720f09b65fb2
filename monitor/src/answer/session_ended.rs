//! Answers `SessionEnded`: takes the vouch back, and with an account's last session on a worker, the worker's link to its broker.
//!
//! Runs as root. Reads from: worker (hostile); it can end its own sessions only. A broker without sessions stays a while, so that
//! clients who come back at once find it, and is then told to stop.

use std::time::{Duration, Instant};

use ipc::link::monitor_broker::ToBroker;
use ipc::types::{BrokerId, SessionId, WorkerId};

use super::grant::sessions_of;
use crate::{monitor::Monitor, timer::Alarm};

/// How long a broker waits for another session.
const LINGER: Duration = Duration::from_secs(10);

pub(crate) fn answer_session_ended(m: &mut Monitor, id: WorkerId, session: SessionId) {
    let Some(worker) = m.workers.get_mut(&id) else { return };
    if let Some(broker) = worker.sessions.end(session)
        && worker.sessions.count(broker) == 0
    {
        let linked = worker.links.remove(&broker);
        release(m, id, broker, linked);
    }
}

/// A worker has no session of this broker any more: closes its link, and waits for the broker to become idle.
pub(crate) fn release(m: &mut Monitor, worker: WorkerId, id: BrokerId, linked: bool) {
    let idle = sessions_of(m, id) == 0;
    let Some(broker) = m.brokers.get_mut(&id) else { return };
    if linked {
        broker.child.send(ToBroker::DropWorker(worker), Vec::new());
    }
    // An alarm that is set already looks at the time anew.
    if idle && broker.idle_since.replace(Instant::now()).is_none() {
        m.timers.set(LINGER, Alarm::BrokerIdle(id));
    }
}

/// Stops a broker that has had no session for long enough; otherwise looks again later.
pub(crate) fn retire_idle_broker(m: &mut Monitor, id: BrokerId) {
    let busy = sessions_of(m, id) > 0;
    let Some(broker) = m.brokers.get_mut(&id) else { return };
    let Some(since) = broker.idle_since else { return };
    if busy {
        broker.idle_since = None;
    } else if since.elapsed() < LINGER {
        m.timers.set(LINGER.saturating_sub(since.elapsed()), Alarm::BrokerIdle(id));
    } else {
        broker.stopping = true;
        broker.child.send(ToBroker::Stop, Vec::new());
        m.timers.set(LINGER, Alarm::BrokerLate(id));
    }
}
