//! Which request is permitted in which phase, how often, and where it is answered. Adding a row is the review.
//!
//! Phase and count are kept per worker and session, never per process: one worker holds many clients.
//! Reads from: children (hostile). A request that is not permitted now is a breach, and its sender is ended.

use std::collections::BTreeMap;

use ipc::{
    Breach,
    link::{monitor_authd::FromAuthd, monitor_broker::FromBroker, monitor_worker::FromWorker},
    types::{BrokerId, SessionId},
};

/// What a child may say to the monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Ready,
    CannotStart,
    Log,
    Grant,
    WorkerBreach,
    PassivePool,
    ConnectBack,
    SessionEnded,
}

/// When a request is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Always.
    Any,
    /// Before the child has said `Ready`.
    Starting,
    /// After it.
    Serving,
    /// After it, about a session of this worker that authd vouched for.
    Vouched,
}

/// How often a request is permitted in its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Often {
    /// Once, for it ends the phase (of the process, or of the session).
    Once,
    /// Once for each session.
    OncePerSession,
    /// As often as it likes: the answer is small, comes at once, and a sender that does not read answers is ended.
    Freely,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub request: Request,
    pub phase: Phase,
    #[cfg_attr(not(test), expect(dead_code, reason = "held by the phases and by Sessions; the tests compare"))]
    pub often: Often,
    /// The rule, as a breach of it is reported.
    pub rule: &'static str,
}

const fn row(request: Request, phase: Phase, often: Often, rule: &'static str) -> Row {
    Row { request, phase, often, rule }
}

/// The whole of what root answers.
#[rustfmt::skip]
pub(crate) const TABLE: &[Row] = &[
    //  request                phase            how often                                    answered in
    row(Request::Ready,        Phase::Starting, Often::Once,           "Ready once"),        // monitor.rs
    row(Request::CannotStart,  Phase::Starting, Often::Once,           "CannotStart once, before Ready"), // monitor.rs
    row(Request::Log,          Phase::Any,      Often::Freely,         "Log"),               // log.rs, which drops a flood
    row(Request::Grant,        Phase::Serving,  Often::OncePerSession, "Grant after Ready"), // answer/grant.rs
    row(Request::WorkerBreach, Phase::Serving,  Often::Freely,         "WorkerBreach after Ready"), // monitor.rs
    row(Request::PassivePool,  Phase::Serving,  Often::Freely,         "PassivePool after Ready"), // answer/passive_sockets.rs
    row(Request::ConnectBack,  Phase::Vouched,  Often::Freely,         "ConnectBack for a vouched session of its own"), // answer/connect_back.rs
    row(Request::SessionEnded, Phase::Vouched,  Often::Once,           "SessionEnded once, for a vouched session of its own"), // answer/session_ended.rs
];

/// Judges a request of a child that has said `Ready` or not, about a session that is vouched for or not.
pub(crate) fn permit(request: Request, ready: bool, vouched: bool) -> Result<(), Breach> {
    let Some(row) = TABLE.iter().find(|row| row.request == request) else {
        return Err(Breach::OutOfPhase("not in the table"));
    };
    let now = match row.phase {
        Phase::Any => true,
        Phase::Starting => !ready,
        Phase::Serving => ready,
        Phase::Vouched => ready && vouched,
    };
    if now { Ok(()) } else { Err(Breach::OutOfPhase(row.rule)) }
}

impl From<&FromWorker> for Request {
    fn from(record: &FromWorker) -> Self {
        match record {
            FromWorker::Ready(_) => Request::Ready,
            FromWorker::CannotStart(_) => Request::CannotStart,
            FromWorker::Log(_) => Request::Log,
            FromWorker::PassivePool(_) => Request::PassivePool,
            FromWorker::ConnectBack(_) => Request::ConnectBack,
            FromWorker::SessionEnded(_) => Request::SessionEnded,
        }
    }
}

impl From<&FromAuthd> for Request {
    fn from(record: &FromAuthd) -> Self {
        match record {
            FromAuthd::Ready(_) => Request::Ready,
            FromAuthd::CannotStart(_) => Request::CannotStart,
            FromAuthd::Log(_) => Request::Log,
            FromAuthd::Grant(_) => Request::Grant,
            FromAuthd::WorkerBreach(_) => Request::WorkerBreach,
        }
    }
}

impl From<&FromBroker> for Request {
    fn from(record: &FromBroker) -> Self {
        match record {
            FromBroker::Ready(_) => Request::Ready,
            FromBroker::CannotStart(_) => Request::CannotStart,
            FromBroker::Log(_) => Request::Log,
            FromBroker::WorkerBreach(_) => Request::WorkerBreach,
        }
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
    /// Refused grants whose sessions the worker may still end.
    refused: u32,
}

impl Sessions {
    /// Takes authd's word for a session; false if it was vouched for already.
    pub fn vouch(&mut self, session: SessionId, broker: BrokerId) -> bool {
        let free = !self.by_id.contains_key(&session);
        if free {
            self.by_id.insert(session, (broker, Standing::Waiting));
            *self.per_broker.entry(broker).or_default() += 1;
        }
        free
    }

    /// A grant was refused instead.
    pub fn refuse(&mut self) {
        self.refused = self.refused.saturating_add(1);
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

    /// Ends a session; whose it was, if it was anybody's.
    pub fn end(&mut self, session: SessionId) -> Option<BrokerId> {
        let Some((broker, _)) = self.by_id.remove(&session) else {
            self.refused = self.refused.saturating_sub(1);
            return None;
        };
        match self.per_broker.get_mut(&broker) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.per_broker.remove(&broker)),
        }
        Some(broker)
    }

    /// The worker has been told of this session.
    pub fn granted(&mut self, session: SessionId) {
        self.by_id.entry(session).and_modify(|(_, standing)| *standing = Standing::Granted);
    }

    /// A broker died: its sessions are lost. Which of them the worker had not been told of.
    pub fn lose(&mut self, broker: BrokerId) -> Vec<SessionId> {
        let waiting = self.of(broker, Standing::Waiting);
        for (_, standing) in self.by_id.values_mut().filter(|(of, _)| *of == broker) {
            *standing = Standing::Lost;
        }
        waiting
    }

    /// The sessions of a broker that have come so far.
    pub fn of(&self, broker: BrokerId, so_far: Standing) -> Vec<SessionId> {
        self.by_id.iter().filter(|(_, state)| **state == (broker, so_far)).map(|(&session, _)| session).collect()
    }

    /// Every session of a broker.
    pub fn all_of(&self, broker: BrokerId) -> Vec<SessionId> {
        self.by_id.iter().filter(|(_, (of, _))| *of == broker).map(|(&session, _)| session).collect()
    }

    /// How many sessions of a broker there are.
    pub fn count(&self, broker: BrokerId) -> usize {
        self.per_broker.get(&broker).copied().unwrap_or(0)
    }

    /// The brokers that have sessions here.
    pub fn brokers(&self) -> Vec<BrokerId> {
        self.per_broker.keys().copied().collect()
    }

    /// How many there are in all.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: BrokerId = BrokerId(1);
    const BOB: BrokerId = BrokerId(2);

    #[test]
    fn every_request_has_exactly_one_row() {
        for row in TABLE {
            assert_eq!(TABLE.iter().filter(|other| other.request == row.request).count(), 1, "{row:?}");
            assert!(row.often != Often::Once || matches!(row.phase, Phase::Starting | Phase::Vouched), "{row:?}");
        }
        assert_eq!(TABLE.len(), 8);
    }

    #[test]
    fn a_child_speaks_its_first_word_first_and_once() {
        assert!(permit(Request::Ready, false, false).is_ok());
        assert!(permit(Request::Ready, true, false).is_err());
        assert!(permit(Request::CannotStart, true, false).is_err());
        for early in
            [Request::Grant, Request::PassivePool, Request::ConnectBack, Request::SessionEnded, Request::WorkerBreach]
        {
            assert!(permit(early, false, true).is_err(), "{early:?}");
        }
    }

    #[test]
    fn a_worker_cannot_speak_for_a_session_nobody_vouched_for() {
        let sessions = Sessions::default();
        assert!(sessions.get(SessionId(1)).is_none());
        for request in [Request::ConnectBack, Request::SessionEnded] {
            let breach = permit(request, true, sessions.may_end(SessionId(1))).unwrap_err();
            assert!(matches!(breach, Breach::OutOfPhase(rule) if rule.contains("vouched")));
        }
    }

    #[test]
    fn a_session_is_vouched_for_once_and_ends_once() {
        let mut sessions = Sessions::default();
        assert!(sessions.vouch(SessionId(1), ALICE));
        assert!(!sessions.vouch(SessionId(1), BOB));
        assert_eq!(sessions.get(SessionId(1)), Some((ALICE, Standing::Waiting)));
        assert_eq!(sessions.end(SessionId(1)), Some(ALICE));
        assert!(!sessions.may_end(SessionId(1)));
    }

    #[test]
    fn each_refused_grant_may_be_ended_once_and_no_more() {
        let mut sessions = Sessions::default();
        sessions.refuse();
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
        assert_eq!(sessions.of(ALICE, Standing::Lost), [SessionId(1), SessionId(3)]);
        assert_eq!(sessions.get(SessionId(2)), Some((BOB, Standing::Waiting)));
        assert_eq!((sessions.end(SessionId(1)), sessions.count(ALICE), sessions.count(BOB)), (Some(ALICE), 1, 1));
        assert_eq!((sessions.end(SessionId(3)), sessions.brokers()), (Some(ALICE), vec![BOB]));
    }
}
