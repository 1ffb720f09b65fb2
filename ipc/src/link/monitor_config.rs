//! monitor <-> caisson-config: two files down, the whole configuration up, or one line that says what is wrong.
//!
//! The monitor opens both files and checks who may write them; the other end parses, judges and looks names up, and is gone
//! afterwards. What it says of accounts is believed as the files are, but for uid 0.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Confine, log::Level, monitor_authd::AuthdSettings, monitor_broker, monitor_worker};
use crate::call::{NONE, ONE, Record};
use crate::types::{Blob, Build, Ids, UserName};

/// What the monitor says.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToConfig {
    /// First record; one descriptor, caisson.toml(5).
    Start(ConfigStart),
    /// Answer to [`FromConfig::UsersFile`]; one descriptor, that file.
    Users,
}

/// First record to caisson-config.
#[derive(Debug, Serialize, Deserialize)]
pub struct ConfigStart {
    /// Of the sending build.
    pub build: Build,
    /// How to confine itself.
    pub confine: Confine,
    /// What caisson.toml is called in error messages.
    pub file: Blob<4096>,
}

/// What caisson-config says.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromConfig {
    /// caisson.toml is right; it names this users_file. Once.
    UsersFile(PathBuf),
    /// Last word: everything is right. Two descriptors, sealed tables (see [`crate::table`]): [`Account`]s for the monitor, and
    /// for authd what [`super::monitor_authd::ToAuthd::Users`] describes.
    Done(Box<Loaded>),
    /// Last word: something is wrong. One line in UTF-8.
    Refused(Blob<2048>),
}

/// The end of a reading.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// Everything caisson.toml says.
    pub config: Config,
    /// What could not be enforced, as in [`super::Ready`].
    pub weaker: Blob<1024>,
    /// What is right and will not work as it stands, a line each; at most [`WARNINGS`].
    pub warnings: Vec<Blob<512>>,
}

/// Most warnings of a reading.
pub const WARNINGS: usize = 7;

/// Everything caisson.toml(5) says, with defaults filled in. Fields are named after keywords.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the keywords, which caisson.toml(5) describes")]
pub struct Config {
    /// 1 to 16.
    pub listen: Vec<Listen>,
    pub fixed: Fixed,
    pub allow_root_accounts: bool,
    pub passive_ports: Ports,
    pub active_source_port_20: bool,
    pub max_sessions_per_account: u32,
    pub max_sessions: u32,
    pub active: bool,
    pub log_level: Level,
    /// What workers are told, packed; of `buffer_pool_bytes`, one worker's part.
    pub workers: Blob<{ monitor_worker::SETTINGS }>,
    /// What brokers are told, packed.
    pub brokers: Blob<{ monitor_broker::SETTINGS }>,
    /// What authd is told.
    pub authd: AuthdSettings,
    /// The files of `[[certificate]]`, the certificate of each before its key; at most 32 paths of less than 1024 bytes.
    pub certificates: Vec<PathBuf>,
}

/// Settings that a reload cannot change.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the keywords, which caisson.toml(5) describes")]
pub struct Fixed {
    /// `worker_user` and `authd_user`, looked up; `None` without root: stay who we are.
    pub worker_ids: Option<Ids>,
    pub authd_ids: Option<Ids>,
    /// 1 to 128: 0 has been replaced by the number of CPUs.
    pub workers: u32,
    pub best_effort: bool,
    /// `None`: there is none.
    pub control_socket: Option<PathBuf>,
    pub program_dir: Option<PathBuf>,
}

/// One `[[listen]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    /// Where to listen.
    pub address: SocketAddr,
    /// Where in caisson.toml it is written: line and column, from 1.
    pub place: (u32, u32),
    /// It has `proxies`: who connects there is not the client, and is not to be connected to.
    pub proxied: bool,
}

/// First and last port of the passive range.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// At least 1024.
    pub first: u16,
    /// At least `first`.
    pub last: u16,
}

/// An account, complete and judged: root's own copy, the only source of uid, groups, home and permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name.
    pub name: UserName,
    /// The rest.
    pub user: User,
}

/// What root knows of an account. It has no password here.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Refused, whatever the password.
    pub locked: bool,
    /// Whom its broker becomes. A broker of root's that is told of nobody does not start.
    pub ids: Option<Ids>,
    /// The account's root directory.
    pub home: PathBuf,
    /// What it may do: the bits of child-ipc's `Permissions`, which root looks into none of.
    pub permissions: u16,
    /// For its workers: the number of child-ipc's `Require`, which root does not look into either.
    pub tls_required: u8,
}

impl Record for ToConfig {
    const CAP: usize = 8192;
    fn descriptors(&self) -> RangeInclusive<usize> {
        ONE
    }
}

impl Record for FromConfig {
    /// Paths are shorter than 4096 bytes; there are two in a [`Config`], beside those of certificates and the settings it carries packed.
    const CAP: usize = 73_728;
    fn descriptors(&self) -> RangeInclusive<usize> {
        match self {
            FromConfig::Done(_) => 2..=2,
            _ => NONE,
        }
    }
}

impl Record for Account {
    const CAP: usize = 8192;
}
