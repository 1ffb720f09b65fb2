//! monitor <-> broker: set-up, and the links to workers whose sessions are this account's.

use std::{ops::RangeInclusive, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{CannotStart, Confine, Ready, log::LogRecord};
use crate::call::{NONE, ONE, Record};
use crate::types::{Blob, Build, UserName, WorkerId};

/// Longest packed form of a broker's settings in bytes: the longest path of the kernel, and a little.
pub const SETTINGS: usize = 4_608;

/// What the monitor says.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToBroker {
    /// First record.
    Start(BrokerStart),
    /// Serve this worker; one descriptor, the end of its link. At most `slots` are served at once.
    AddWorker(WorkerId),
    /// The account's last session on this worker has ended, or the worker is dead: close the link.
    DropWorker(WorkerId),
    /// Finish what is being done and exit.
    Stop,
}

/// First record to a broker.
#[derive(Debug, Serialize, Deserialize)]
pub struct BrokerStart {
    /// Of the sending build.
    pub build: Build,
    /// How to confine itself: the account's uid, gid and groups.
    pub confine: Confine,
    /// The account, for log lines and the owner column of listings.
    pub account: UserName,
    /// What the account may do: the bits of child-ipc's `Permissions`.
    pub permissions: u16,
    /// The account's root directory, which the broker opens: whoever does that may wait for a disk.
    pub home: PathBuf,
    /// What it obeys, packed (ipc/child/src/link/settings.rs).
    pub settings: Blob<SETTINGS>,
    /// Most workers served at once, 1 to 256: one thread each, made before the sandbox closes.
    pub slots: u16,
}

/// What a broker says.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromBroker {
    /// Confined and serving.
    Ready(Ready),
    /// Cannot start.
    CannotStart(CannotStart),
    /// A line for the log.
    Log(LogRecord),
    /// This worker broke the contract of its link; the monitor ends it.
    WorkerBreach(WorkerId),
}

impl Record for ToBroker {
    // `Start` holds two paths: the home, and one among the settings.
    const CAP: usize = 4096 + SETTINGS;
    fn descriptors(&self) -> RangeInclusive<usize> {
        match self {
            ToBroker::AddWorker(_) => ONE,
            _ => NONE,
        }
    }
}

impl Record for FromBroker {}
