//! monitor <-> worker: what a worker cannot do itself, and who its sessions are.
//!
//! A worker can name a session; only authd's grant makes it an account's (see [`super::monitor_authd`]).

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::{CannotStart, Confine, Ready, log::LogRecord};
use crate::MAX_FDS;
use crate::call::{Call, NONE, ONE, Record, TWO, UP_TO_ONE};
use crate::types::{Blob, BrokerId, Build, ListenerId, SessionId, WorkerId};

/// Longest packed form of a worker's settings in bytes.
pub const SETTINGS: usize = 19_456;

/// What the monitor says.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// First record.
    Start(WorkerStart),
    /// Links to authd; two descriptors: for password checks, and for signatures. They come again when authd was started again:
    /// those before are dead.
    Authd,
    /// Accept clients here; one descriptor, the listening socket all workers share.
    Listener(Listener),
    /// Accept no longer here, after a reload; sessions go on.
    CloseListener(ListenerId),
    /// New values of settings, for sessions from now on and time-outs of all; packed (ipc/child/src/link/settings.rs).
    Settings(Blob<SETTINGS>),
    /// Answer to [`PassivePool`]: that many descriptors, bound and listening. None: the range is used up now.
    PassivePool(PassiveSockets),
    /// Answer to [`ConnectBack`]: one descriptor if it is connecting, none if refused.
    ConnectBack(Connecting),
    /// authd vouched for a session; how its worker reaches the account.
    Granted(Granted),
    /// authd vouched for a session, but the account cannot be served now (its root is missing, a broker does not
    /// start, a limit). Answered to the client as 421 or 530.
    GrantRefused(SessionId),
    /// Close this session with 421.
    Kick(SessionId),
    /// Tell every session 421 and exit when all are told, at once.
    Stop,
    /// A worker's region of the ledger (worker/src/ledger.rs); one descriptor, to be written if it is the worker's own (true), to
    /// be read otherwise. One for each worker follows `Start`, the same order for all.
    Region(bool),
}

/// First record to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerStart {
    /// Of the sending build.
    pub build: Build,
    /// How to confine itself.
    pub confine: Confine,
    /// This worker.
    pub worker: WorkerId,
    /// Initial settings, packed (ipc/child/src/link/settings.rs).
    pub settings: Blob<SETTINGS>,
    /// Key of the ledger's hash, the same for all workers; how many regions of it come next.
    pub ledger: (u64, u32),
}

/// A listening socket of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// Its name on this link.
    pub id: ListenerId,
    /// Where it is bound.
    pub address: SocketAddr,
}

/// A worker's pool of passive sockets for clients of this listener runs low.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassivePool {
    /// The sockets are bound to this listener's address.
    pub listener: ListenerId,
    /// How many are wanted, 1 to [`MAX_FDS`].
    pub wanted: u8,
}

/// Answer to [`PassivePool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassiveSockets {
    /// For clients of this listener.
    pub listener: ListenerId,
}

impl Call for PassivePool {
    type Reply = PassiveSockets;
    const SENT: RangeInclusive<usize> = NONE;
    const RETURNED: RangeInclusive<usize> = 0..=MAX_FDS;
}

/// A session in active mode asks for a data connection back to its own client.
///
/// Carries the control socket: the peer's address is read from it, never from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectBack {
    /// A vouched session of the asking worker, with no other such question open.
    pub session: SessionId,
    /// The port of PORT or EPRT; none below 1024 is connected to.
    pub port: u16,
}

/// Answer to [`ConnectBack`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connecting {
    /// Of which session.
    pub session: SessionId,
    /// 0 when a descriptor comes with it: a non-blocking socket, connected or connecting (writable when it is
    /// decided, `SO_ERROR` tells). Otherwise errno.
    pub errno: i32,
}

impl Call for ConnectBack {
    type Reply = Connecting;
    const SENT: RangeInclusive<usize> = ONE;
    const RETURNED: RangeInclusive<usize> = UP_TO_ONE;
}

/// A session is an account's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Which session.
    pub session: SessionId,
    /// The account's broker. A descriptor comes with it if this worker has no link to it yet (or that was closed).
    pub broker: BrokerId,
    /// What it may not do without TLS, as [`super::monitor_config::User`] has it.
    pub tls_required: u8,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromWorker {
    /// Confined and serving.
    Ready(Ready),
    /// Cannot start.
    CannotStart(CannotStart),
    /// A line for the log.
    Log(LogRecord),
    /// Passive sockets, please.
    PassivePool(PassivePool),
    /// A connection back to the client, please; one descriptor, the control socket.
    ConnectBack(ConnectBack),
    /// A session that was granted (or refused by `GrantRefused`: not needed then) has ended. When it was the
    /// account's last on this worker, the link to the broker is closed by both sides.
    SessionEnded(SessionId),
    /// Lines for the log that were gathered for a moment, oldest first: one record and one waking of root for all.
    Lines(Vec<LogRecord>),
}

impl Record for ToWorker {
    /// Settings are the longest.
    const CAP: usize = SETTINGS + 1024;
    fn descriptors(&self) -> RangeInclusive<usize> {
        match self {
            ToWorker::Authd => TWO,
            ToWorker::Listener(_) | ToWorker::Region(_) => ONE,
            ToWorker::PassivePool(_) => PassivePool::RETURNED,
            ToWorker::ConnectBack(reply) if reply.errno == 0 => ONE,
            ToWorker::Granted(_) => UP_TO_ONE,
            _ => NONE,
        }
    }
}

impl Record for FromWorker {
    fn descriptors(&self) -> RangeInclusive<usize> {
        if let FromWorker::ConnectBack(_) = self { ConnectBack::SENT } else { NONE }
    }
}
