//! Configuration: caisson.toml(5) and caisson-users(5), read whole, checked whole, or refused with file, line and column.
//!
//! Runs as root, before the sandbox and again on SIGHUP. Reads: two files that only their owner may write. Trusts: the admin.
//! `keywords.rs` is the table everything derives from; `parse.rs` walks a file along it; `check.rs` judges the whole.
//! Not here: binding what is configured (listen.rs), swapping it at run time (reload.rs).

mod check;
mod keywords;
mod parse;
mod value;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use ipc::{
    link::{log::Level, monitor_authd::AuthdSettings, monitor_worker::FtpSettings},
    types::{Blob, Ids, Permissions, UserName},
};

pub(crate) use check::Users;
pub use check::{load, system_ids};
pub use keywords::{CONFIG, Keyword, LISTEN, REQUIRED, UNSET, USER};
pub use parse::{ConfigError, Source};
pub use value::{Kind, Value};

/// Everything caisson.toml says, with defaults filled in from [`CONFIG`].
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Where clients are accepted; never empty after [`load`].
    pub listen: Vec<Listen>,
    /// What takes effect at start only.
    pub fixed: Fixed,
    /// `users_file`.
    pub users_file: PathBuf,
    /// `log_level`.
    pub log_level: LogLevel,
    /// `allow_root_accounts`.
    pub allow_root_accounts: bool,
    /// `umask`, 0 to 0o777.
    pub umask: u16,
    /// FTP and `[performance]`: what workers are told, as [`FtpSettings`].
    pub ftp: Ftp,
    /// What authd is told.
    pub auth: Auth,
    /// `max_sessions`.
    pub max_sessions: u32,
    /// `max_sessions_per_account`.
    pub max_sessions_per_account: u32,
    /// `[anonymous]`.
    pub anonymous: Anonymous,
}

/// Settings that a reload cannot change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fixed {
    /// `worker_user`, resolved; `None` without root: stay who we are.
    pub worker_ids: Option<Ids>,
    /// `authd_user`, likewise.
    pub authd_ids: Option<Ids>,
    /// `worker_user` as written.
    pub worker_user: String,
    /// `authd_user` as written.
    pub authd_user: String,
    /// `workers`; 0 has been replaced by the number of CPUs.
    pub workers: u32,
    /// `sandbox = "best-effort"`.
    pub best_effort: bool,
    /// `control_socket`; `None` in quick start.
    pub control_socket: Option<PathBuf>,
    /// `program_dir`.
    pub program_dir: Option<PathBuf>,
    /// `max_concurrent_password_checks`; 0 has been replaced by the number of CPUs.
    pub password_checks: u32,
}

/// One `[[listen]]`.
#[derive(Debug, Clone, Default)]
pub struct Listen {
    /// `address`.
    pub address: Option<SocketAddr>,
    /// Where it stands, for error messages: `file:line:column`.
    pub place: String,
}

/// `log_level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLevel(pub Level);

impl Default for LogLevel {
    fn default() -> Self {
        LogLevel(Level::Info)
    }
}

/// First and last port of the passive range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ports {
    /// At least 1024.
    pub first: u16,
    /// At least `first`.
    pub last: u16,
}

/// What concerns FTP, and `[performance]`.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "named after the keywords, which keywords.rs and caisson.toml(5) describe")]
pub struct Ftp {
    pub banner: String,
    pub passive_ports: Ports,
    pub passive_address: Option<Ipv4Addr>,
    pub active: bool,
    pub active_source_port_20: bool,
    pub login_timeout_secs: u32,
    pub idle_timeout_secs: u32,
    pub data_connect_timeout_secs: u32,
    pub stall_timeout_secs: u32,
    pub max_login_failures: u32,
    pub sendfile: bool,
    pub splice: bool,
    pub buffer_pool_bytes: u64,
    pub transfer_chunk_bytes: u32,
}

/// What authd is told, but for what takes effect at start only.
#[derive(Debug, Clone, Default)]
pub struct Auth {
    /// `login_cache_ttl_secs`.
    pub login_cache_ttl_secs: u32,
}

/// `[anonymous]`.
#[derive(Debug, Clone, Default)]
pub struct Anonymous {
    /// `enabled`.
    pub enabled: bool,
    /// What it may touch; name and password unused.
    pub account: Entry,
}

/// One `[[user]]` as written: names resolved to numbers, not yet judged.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// `name`.
    pub name: Option<UserName>,
    /// `password`.
    pub hash: Option<Blob<512>>,
    /// `home`.
    pub home: PathBuf,
    /// `uid`.
    pub uid: Option<u32>,
    /// `gid`; without it, the primary group of `uid`.
    pub gid: Option<u32>,
    /// `groups`.
    pub groups: Vec<u32>,
    /// `permissions`.
    pub permissions: Option<Permissions>,
    /// `locked`.
    pub locked: bool,
}

/// An account, complete and judged: root's own copy, the only source of uid, groups, home and permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The stored hash, for authd; none: no password is ever right.
    pub hash: Option<Blob<512>>,
    /// Refused, whatever the password.
    pub locked: bool,
    /// Any password is right: anonymous accounts.
    pub any_password: bool,
    /// Whom its broker becomes.
    pub ids: Ids,
    /// The account's root directory.
    pub home: PathBuf,
    /// What it may do.
    pub permissions: Permissions,
}

impl Config {
    /// The settings of one worker.
    pub fn ftp_settings(&self) -> FtpSettings {
        let f = &self.ftp;
        FtpSettings {
            banner: Blob::cut(f.banner.as_bytes()),
            login_timeout_secs: f.login_timeout_secs,
            idle_timeout_secs: f.idle_timeout_secs,
            data_connect_timeout_secs: f.data_connect_timeout_secs,
            stall_timeout_secs: f.stall_timeout_secs,
            max_login_failures: f.max_login_failures,
            active: f.active,
            passive_address: f.passive_address,
            max_sessions: self.max_sessions,
            sendfile: f.sendfile,
            splice: f.splice,
            buffer_pool_bytes: f.buffer_pool_bytes / u64::from(self.fixed.workers.max(1)),
            transfer_chunk_bytes: f.transfer_chunk_bytes,
        }
    }

    /// The settings of authd.
    pub fn authd_settings(&self) -> AuthdSettings {
        AuthdSettings {
            max_concurrent_password_checks: self.fixed.password_checks,
            login_cache_ttl_secs: self.auth.login_cache_ttl_secs,
        }
    }
}
