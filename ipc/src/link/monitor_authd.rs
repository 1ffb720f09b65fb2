//! monitor <-> authd: set-up and user table down, grants up.
//!
//! This is the link on which root learns who is logged in. authd vouches with a name only; uid, groups, home and
//! permissions come from the monitor's own copy of the user table.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::{CannotStart, Confine, Ready, log::LogRecord};
use crate::MAX_FDS;
use crate::call::{NONE, ONE, Record, TWO};
use crate::types::{Blob, Build, SessionId, UserName, WorkerId};

/// What the monitor says.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToAuthd {
    /// First record.
    Start(AuthdStart),
    /// The user table, new at every reload: a sealed memfd that holds `UserRecord`s (ipc/child/src/link/user_record.rs), each postcard-encoded behind
    /// its length as four bytes, least significant first. Replaces the table before and empties the cache.
    Users,
    /// Serve this worker; two descriptors, the ends of its links: for password checks, and for signatures.
    AddWorker(WorkerId),
    /// This worker is dead: drop its link and everything asked on it.
    DropWorker(WorkerId),
    /// New values of settings, after a reload.
    Settings(AuthdSettings),
    /// Finish and exit.
    Stop,
    /// The TLS keys: for each `[[certificate]]` two descriptors, its certificate and its key, open for reading. They replace those
    /// before, if each key belongs to its certificate. Answered by [`FromAuthd::Certificates`]; unless this is true, what has not
    /// changed since the last time is not complained of again.
    Certificates(bool),
}

/// First record to authd.
#[derive(Debug, Serialize, Deserialize)]
pub struct AuthdStart {
    /// Of the sending build.
    pub build: Build,
    /// How to confine itself.
    pub confine: Confine,
    /// Initial settings.
    pub settings: AuthdSettings,
}

/// Settings of caisson.toml(5) that authd obeys.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthdSettings {
    /// `max_concurrent_password_checks`: argon2id runs at once, 1 to 64. Takes effect at start only.
    pub max_concurrent_password_checks: u32,
    /// `login_cache_ttl_secs`: seconds an accepted credential is remembered; 0 is off.
    pub login_cache_ttl_secs: u32,
}

/// What authd says.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromAuthd {
    /// Confined and serving.
    Ready(Ready),
    /// Cannot start.
    CannotStart(CannotStart),
    /// Session `session` of worker `worker` is account `user`.
    Grant(Grant),
    /// A line for the log.
    Log(LogRecord),
    /// This worker broke the contract of its link; the monitor ends it.
    WorkerBreach(WorkerId),
    /// What the certificates came to: they are taken over, and workers are told. Unless the text is not empty: that is wrong with
    /// the file at this place, and nothing was taken over.
    Certificates(u8, Blob<512>),
}

/// authd's word that a session has proved to be an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Whose session.
    pub worker: WorkerId,
    /// Which.
    pub session: SessionId,
    /// The account, by name only.
    pub user: UserName,
}

impl Record for ToAuthd {
    fn descriptors(&self) -> RangeInclusive<usize> {
        match self {
            ToAuthd::Users => ONE,
            ToAuthd::AddWorker(_) => TWO,
            ToAuthd::Certificates(_) => 0..=MAX_FDS,
            _ => NONE,
        }
    }
}

impl Record for FromAuthd {}
