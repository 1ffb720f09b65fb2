//! Configuration: caisson.toml(5) and caisson-users(5), read whole, checked whole, or refused with file, line and column.
//!
//! Runs as root, before the sandbox and again on SIGHUP. Reads: two files that only their owner may write. Trusts: the admin.
//! `keywords.rs` is the table everything derives from; `parse.rs` walks a file along it; `value.rs` reads single values;
//! `check.rs` judges the whole. Not here: binding what is configured (listen.rs), swapping it at run time (reload.rs).

mod check;
mod keywords;
mod parse;
mod value;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use ipc::link::{log::Level, monitor_authd::AuthdSettings, monitor_worker::FtpSettings};
use ipc::types::{Blob, Ids, Permissions, UserName};

pub use check::load;
pub use keywords::{CONFIG, Keyword, Kind, LISTEN, REQUIRED, UNSET, USER};
pub use value::Ports;

/// Every account by name.
pub type Users = BTreeMap<UserName, User>;

/// Everything caisson.toml says, with defaults filled in from [`CONFIG`]. Fields are named after keywords.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "named after the keywords, which caisson.toml(5) describes")]
pub struct Config {
    /// Never empty after [`load`].
    pub listen: Vec<Listen>,
    pub fixed: Fixed,
    pub users_file: PathBuf,
    pub log_level: Level,
    pub allow_root_accounts: bool,
    pub umask: u16,
    pub passive_ports: Ports,
    pub active_source_port_20: bool,
    pub max_sessions_per_account: u32,
    pub anonymous: bool,
    pub anonymous_account: Entry,
    /// What workers are told; of `buffer_pool_bytes`, one worker's part.
    pub ftp: FtpSettings,
    /// What authd is told.
    pub authd: AuthdSettings,
}

/// Settings that a reload cannot change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the keywords, which caisson.toml(5) describes")]
pub struct Fixed {
    pub worker_user: String,
    pub authd_user: String,
    /// `worker_user` and `authd_user`, looked up; `None` without root: stay who we are.
    pub worker_ids: Option<Ids>,
    pub authd_ids: Option<Ids>,
    /// 0 has been replaced by the number of CPUs.
    pub workers: u32,
    pub best_effort: bool,
    /// `None`: there is none.
    pub control_socket: Option<PathBuf>,
    pub program_dir: Option<PathBuf>,
}

/// One `[[listen]]`.
#[derive(Debug, Clone, Default)]
pub struct Listen {
    /// `address`; always there after [`load`].
    pub address: Option<SocketAddr>,
    /// Where it was written, for error messages: `file:line:column`.
    pub place: String,
}

/// One `[[user]]` as written: names looked up, not yet judged.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "named after the keywords, which caisson-users(5) describes")]
pub struct Entry {
    pub name: Option<UserName>,
    pub uid: Option<u32>,
    /// Without it, the primary group of `uid`.
    pub gid: Option<u32>,
    pub groups: Vec<u32>,
    pub user: User,
}

/// An account, complete and judged: root's own copy, the only source of uid, groups, home and permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The stored hash, for authd; none: no password is ever right.
    pub hash: Option<Blob<512>>,
    /// Refused, whatever the password.
    pub locked: bool,
    /// Any password is right: anonymous accounts.
    pub any_password: bool,
    /// Whom its broker becomes. A broker of root's that is told of nobody does not start.
    pub ids: Option<Ids>,
    /// The account's root directory.
    pub home: PathBuf,
    /// What it may do.
    pub permissions: Permissions,
}
