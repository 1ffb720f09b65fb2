//! caissonctl -> monitor, over `/run/caisson/control.sock`: bound by the monitor, root and its group only.
//!
//! Each connection carries one request and gets lines, then `Done`.

use serde::{Deserialize, Serialize};

use crate::call::Record;
use crate::types::{Blob, Build, UserName};

/// What the admin asks.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Of the caissonctl that asks.
    pub build: Build,
    /// What for.
    pub command: Command,
}

/// The commands that need the running daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Validate and swap the configuration, like SIGHUP.
    Reload,
    /// One line a process: name, pid, sessions.
    Status,
    /// Close every session of an account.
    Kick(UserName),
}

/// What the monitor answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// One line of output.
    Line(Blob<1536>),
    /// The end; whether it was done.
    Done(bool),
}

impl Record for Request {
    const CAP: usize = 256;
}

impl Record for Reply {}
