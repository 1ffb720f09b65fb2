//! worker <-> authd: password checks. Hostile in both directions.

use std::{net::IpAddr, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

use crate::{
    Channel,
    call::{Call, NONE, Record},
    types::{HostName, Secret, SessionId, UserName},
};

/// What a worker asks.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToAuthd {
    /// Is this the account's password?
    Check(Check),
    /// The client of this check is gone: forget it if it has not begun.
    Forget(SessionId),
}

/// A password check. Answered once, by [`Verdict`]; before an accepting verdict authd has sent its
/// [`Grant`](super::monitor_authd::Grant) to the monitor.
#[derive(Debug, Serialize, Deserialize)]
pub struct Check {
    /// A session for which the worker has not asked before.
    pub session: SessionId,
    /// Who the client says it is.
    pub user: UserName,
    /// What it offers as proof.
    pub password: Secret,
    /// Where it comes from; decides whose turn it is in the queue.
    pub source: IpAddr,
    /// The host it has named; accounts of other hosts are refused as with a wrong password.
    pub host: Option<HostName>,
}

impl Call for Check {
    type Reply = Verdict;
    const SENT: RangeInclusive<usize> = NONE;
    const RETURNED: RangeInclusive<usize> = NONE;
}

/// What authd answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromAuthd {
    /// The answer to a check.
    Verdict(Verdict),
}

/// The answer to a [`Check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Of which session.
    pub session: SessionId,
    /// The outcome.
    pub outcome: Outcome,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Right; the monitor has been told.
    Accepted,
    /// Unknown, locked, of another host, or wrong: never says which.
    Rejected,
    /// The queue is full; try later.
    Busy,
}

impl Record for ToAuthd {
    const CAP: usize = 1024;
    const WIPE: bool = true;
}

impl Record for FromAuthd {
    const CAP: usize = 1024;
}

/// The worker's end.
pub type WorkerEnd = Channel<ToAuthd, FromAuthd>;
/// authd's end.
pub type AuthdEnd = Channel<FromAuthd, ToAuthd>;
