//! The links root has an end of: one file each, one closed enum a direction.
//!
//! Variants are appended, never reordered. The first record a child receives is its `Start`, which begins with the
//! [`Build`](crate::types::Build) both ends must share.

pub mod control;
pub mod log;
pub mod monitor_authd;
pub mod monitor_broker;
pub mod monitor_config;
pub mod monitor_worker;

use serde::{Deserialize, Serialize};

use crate::types::{Blob, Ids};

/// How a child confines itself; part of every `Start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confine {
    /// Whose rights to take on; `None` when the monitor was not started by root: stay who we are.
    pub ids: Option<Ids>,
    /// Go on when the sandbox cannot be enforced (`sandbox = "best-effort"`), and say so.
    pub best_effort: bool,
}

/// A child's first word: it is confined and serving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// What could not be enforced, one sentence each, joined by `; `; empty when all holds.
    pub weaker: Blob<1024>,
}

/// A child's last word before it exits: why it cannot start, one line that names the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CannotStart {
    /// The line.
    pub why: Blob<1024>,
}
