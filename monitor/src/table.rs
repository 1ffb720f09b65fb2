//! Which request is permitted in which phase, how often, and where it is answered. Adding a row is the review.
//!
//! Phase and count are kept per worker and session, never per process: one worker holds many clients.
//! Reads from: children (hostile). A request that is not permitted now is a breach, and its sender is ended.

use std::collections::BTreeMap;

use ipc::Breach;
use ipc::link::{monitor_authd::FromAuthd, monitor_broker::FromBroker};
use ipc::link::{monitor_config::FromConfig, monitor_worker::FromWorker};
use ipc::types::{BrokerId, SessionId};

/// When a request is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Always.
    Any,
    /// Before the child has said `Ready` (caisson-config: `UsersFile`).
    Starting,
    /// After it.
    Serving,
    /// After it, about a session of this worker that authd vouched for.
    Vouched,
}
use Phase::{Any, Serving, Starting, Vouched};

/// A row: the phase, and the rule as a breach of it is reported.
#[derive(Debug)]
pub(crate) struct Row(pub Phase, pub &'static str);

#[rustfmt::skip]
pub(crate) fn of_worker(record: &FromWorker) -> Row {
    match record { //                  phase     rule                                  how often, and answered in
        FromWorker::Ready(_) | FromWorker::CannotStart(_) => Row(Starting, "the first word comes once"), // once; monitor.rs
        FromWorker::Log(_) | FromWorker::Lines(_) => Row(Any, "Log"),                  // freely, a flood is dropped; log.rs
        FromWorker::PassivePool(_) =>  Row(Serving,  "PassivePool follows Ready"),     // while answers are read; answer/passive_sockets.rs
        FromWorker::ConnectBack(_) =>  Row(Vouched,  "ConnectBack is for a vouched session of its own"), // while answers are read; answer/connect_back.rs
        FromWorker::SessionEnded(_) => Row(Vouched,  "SessionEnded is for a vouched session of its own"), // once a session; answer/session_ended.rs
    }
}

#[rustfmt::skip]
pub(crate) fn of_authd(record: &FromAuthd) -> Row {
    match record {
        FromAuthd::Ready(_) | FromAuthd::CannotStart(_) => Row(Starting, "the first word comes once"), // once; monitor.rs
        FromAuthd::Log(_) =>           Row(Any,      "Log"),                           // freely, a flood is dropped; log.rs
        FromAuthd::Grant(_) =>         Row(Serving,  "Grant follows Ready"),           // once a session; answer/grant.rs
        FromAuthd::WorkerBreach(_) =>  Row(Serving,  "WorkerBreach follows Ready"),    // freely; monitor.rs
        FromAuthd::Certificates(..) => Row(Serving,  "Certificates follows Ready"),    // once for each that was asked, others are nothing; certificates.rs
    }
}

#[rustfmt::skip]
pub(crate) fn of_broker(record: &FromBroker) -> Row {
    match record {
        FromBroker::Ready(_) | FromBroker::CannotStart(_) => Row(Starting, "the first word comes once"), // once; monitor.rs
        FromBroker::Log(_) =>          Row(Any,      "Log"),                           // freely, a flood is dropped; log.rs
        FromBroker::WorkerBreach(_) => Row(Serving,  "WorkerBreach follows Ready"),    // freely; monitor.rs
    }
}

#[rustfmt::skip]
pub(crate) fn of_config(record: &FromConfig) -> Row {
    match record {
        FromConfig::UsersFile(_) =>    Row(Starting, "UsersFile comes once"),          // once; config.rs
        FromConfig::Done(_) =>         Row(Serving,  "Done follows UsersFile"),        // once; config.rs
        FromConfig::Refused(_) =>      Row(Any,      "Refused"),                       // once; config.rs
    }
}

impl Row {
    /// Judges a request of a child that has said `Ready` or not, about a session that is vouched for or not.
    pub fn permit(self, ready: bool, vouched: bool) -> Result<(), Breach> {
        let now = match self.0 {
            Any => true,
            Starting => !ready,
            Serving => ready,
            Vouched => ready && vouched,
        };
        if now { Ok(()) } else { Err(Breach::OutOfPhase(self.1)) }
    }
}

/// How far a vouched session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its broker is starting; the worker has not been told yet.
    Waiting,
    /// The worker has its link.
    Granted,
    /// Its broker died; the worker sees that on its link, and may not have yet.
    Lost,
}

/// The vouched sessions of one worker: written by authd's grants alone.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_id: BTreeMap<SessionId, (BrokerId, Standing)>,
    per_broker: BTreeMap<BrokerId, usize>,
    /// Refused grants, whose sessions the worker may still end.
    refused: u32,
}

impl Sessions {
    /// Takes authd's word for a session that was not vouched for before.
    pub fn vouch(&mut self, session: SessionId, broker: BrokerId) {
        if self.by_id.insert(session, (broker, Standing::Waiting)).is_none() {
            *self.per_broker.entry(broker).or_default() += 1;
        }
    }

    /// The grant of a session was refused, before its worker was told of it.
    pub fn refuse(&mut self, session: SessionId) {
        if self.by_id.contains_key(&session) {
            self.end(session);
        }
        self.refused = self.refused.saturating_add(1);
    }

    /// The worker has been told of this session.
    pub fn granted(&mut self, session: SessionId) {
        self.by_id.entry(session).and_modify(|(_, standing)| *standing = Standing::Granted);
    }

    /// A broker died: its sessions are lost. Which of them the worker had not been told of.
    pub fn lose(&mut self, broker: BrokerId) -> Vec<SessionId> {
        let of_broker = self.by_id.iter_mut().filter(|(_, (of, _))| *of == broker);
        let before = of_broker.map(|(&session, (_, standing))| (session, std::mem::replace(standing, Standing::Lost)));
        before.filter(|(_, standing)| *standing == Standing::Waiting).map(|(session, _)| session).collect()
    }

    /// Ends a session; whose it was, if it was anybody's.
    pub fn end(&mut self, session: SessionId) -> Option<BrokerId> {
        let Some((broker, _)) = self.by_id.remove(&session) else {
            self.refused = self.refused.saturating_sub(1);
            return None;
        };
        if let Some(count) = self.per_broker.get_mut(&broker) {
            *count -= 1;
            if *count == 0 {
                self.per_broker.remove(&broker);
            }
        }
        Some(broker)
    }

    /// Whose a session is, and how far it has come.
    pub fn get(&self, session: SessionId) -> Option<(BrokerId, Standing)> {
        self.by_id.get(&session).copied()
    }

    /// Whether the worker may ask for connections of this session: it was told of its account.
    pub fn may_move(&self, session: SessionId) -> bool {
        self.get(session).is_some_and(|(_, so_far)| so_far != Standing::Waiting)
    }

    /// Whether the worker may end this session: it is vouched for, or may be one that was refused.
    pub fn may_end(&self, session: SessionId) -> bool {
        self.by_id.contains_key(&session) || self.refused > 0
    }

    /// The sessions of a broker, and how far they have come.
    pub fn of(&self, broker: BrokerId) -> Vec<(SessionId, Standing)> {
        let of_broker = self.by_id.iter().filter(|(_, (of, _))| *of == broker);
        of_broker.map(|(&session, &(_, standing))| (session, standing)).collect()
    }

    /// How many sessions of a broker there are.
    pub fn count(&self, broker: BrokerId) -> usize {
        self.per_broker.get(&broker).copied().unwrap_or(0)
    }

    /// The brokers that have sessions here.
    pub fn brokers(&self) -> Vec<BrokerId> {
        self.per_broker.keys().copied().collect()
    }

    /// How many sessions there are in all.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use ipc::link::log::{Event, Level, LogRecord};
    use ipc::link::monitor_worker::{ConnectBack, PassivePool};
    use ipc::link::{CannotStart, Ready, monitor_authd::Grant};
    use ipc::types::{Blob, ListenerId, UserName, WorkerId};

    use super::*;

    const ALICE: BrokerId = BrokerId(1);
    const BOB: BrokerId = BrokerId(2);

    fn requests() -> Vec<FromWorker> {
        let (session, port) = (SessionId(1), 2000);
        vec![
            FromWorker::PassivePool(PassivePool { listener: ListenerId(1), wanted: 1 }),
            FromWorker::ConnectBack(ConnectBack { session, port }),
            FromWorker::SessionEnded(session),
        ]
    }

    #[test]
    fn a_child_speaks_its_first_word_first_and_once() {
        let ready = FromWorker::Ready(Ready { weaker: Blob::default() });
        let cannot = FromWorker::CannotStart(CannotStart { why: Blob::default() });
        for first in [ready, cannot] {
            assert!(of_worker(&first).permit(false, false).is_ok());
            assert!(of_worker(&first).permit(true, true).is_err());
        }
        for early in requests() {
            assert!(of_worker(&early).permit(false, true).is_err(), "{early:?}");
        }
        let grant = Grant { worker: WorkerId(1), session: SessionId(1), user: UserName::new(b"a").unwrap() };
        assert!(of_authd(&FromAuthd::Grant(grant)).permit(false, false).is_err());
        assert!(of_broker(&FromBroker::WorkerBreach(WorkerId(1))).permit(false, false).is_err());
    }

    #[test]
    fn a_child_may_always_say_why_it_is_in_trouble() {
        let (level, event) = (Level::Error, Event::Fault);
        let record = FromWorker::Log(LogRecord { level, event, session: None, text: Blob::default() });
        assert!(of_worker(&record).permit(false, false).is_ok() && of_worker(&record).permit(true, false).is_ok());
    }

    #[test]
    fn a_worker_cannot_speak_for_a_session_nobody_vouched_for() {
        let sessions = Sessions::default();
        let of_sessions = [sessions.may_move(SessionId(1)), sessions.may_end(SessionId(1))];
        for (request, vouched) in requests().iter().skip(1).zip(of_sessions) {
            let breach = of_worker(request).permit(true, vouched).unwrap_err();
            assert!(matches!(breach, Breach::OutOfPhase(rule) if rule.contains("vouched")));
        }
    }

    #[test]
    fn a_session_moves_nothing_before_its_worker_was_told_of_it() {
        let mut sessions = Sessions::default();
        sessions.vouch(SessionId(1), ALICE);
        assert!(!sessions.may_move(SessionId(1)) && sessions.may_end(SessionId(1)));
        sessions.granted(SessionId(1));
        assert!(sessions.may_move(SessionId(1)));
    }

    #[test]
    fn a_session_ends_once() {
        let mut sessions = Sessions::default();
        sessions.vouch(SessionId(1), ALICE);
        assert_eq!(sessions.get(SessionId(1)), Some((ALICE, Standing::Waiting)));
        assert_eq!(sessions.end(SessionId(1)), Some(ALICE));
        assert!(!sessions.may_end(SessionId(1)));
        assert_eq!((sessions.len(), sessions.count(ALICE)), (0, 0));
    }

    #[test]
    fn each_refused_grant_may_be_ended_once_and_no_more() {
        let mut sessions = Sessions::default();
        sessions.vouch(SessionId(8), ALICE);
        sessions.refuse(SessionId(8));
        sessions.refuse(SessionId(9));
        assert_eq!((sessions.end(SessionId(8)), sessions.len(), sessions.count(ALICE)), (None, 0, 0));
        assert!(sessions.may_end(SessionId(9)));
        assert_eq!(sessions.end(SessionId(9)), None);
        assert!(!sessions.may_end(SessionId(9)));
    }

    #[test]
    fn the_death_of_a_broker_takes_its_sessions_only() {
        let mut sessions = Sessions::default();
        for (session, broker) in [(1, ALICE), (2, BOB), (3, ALICE)] {
            sessions.vouch(SessionId(session), broker);
        }
        sessions.granted(SessionId(1));
        assert_eq!(sessions.lose(ALICE), [SessionId(3)]);
        assert_eq!(sessions.of(ALICE), [(SessionId(1), Standing::Lost), (SessionId(3), Standing::Lost)]);
        assert_eq!(sessions.get(SessionId(2)), Some((BOB, Standing::Waiting)));
        assert_eq!((sessions.end(SessionId(1)), sessions.count(ALICE), sessions.count(BOB)), (Some(ALICE), 1, 1));
        assert_eq!((sessions.end(SessionId(3)), sessions.brokers()), (Some(ALICE), vec![BOB]));
    }
}
