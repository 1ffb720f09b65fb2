//! The keywords: each once, with section, type, range and default. Parser, errors and manual pages derive from these rows.
//!
//! caisson.toml(5) and caisson-users(5) list them in this order; tests/man.rs compares both ways.

use super::{
    Config, Entry, Kind, Listen, Value,
    value::{gid, groups, phc, put, uid},
};

/// A keyword of section `T`.
#[derive(Debug)]
pub struct Keyword<T> {
    /// The section it stands in; empty for the top of the file.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// Its default as TOML, or [`REQUIRED`], or [`UNSET`].
    pub default: &'static str,
    /// Puts a value in its place. An error says what is wrong; an empty one, that it is not what [`Kind::expected`] says.
    pub(super) set: fn(&mut T, &Value) -> Result<(), String>,
}

/// The default of a keyword that must be given.
pub const REQUIRED: &str = "required";
/// The default of a keyword that may be left out and then has no value.
pub const UNSET: &str = "unset";

const fn word<T>(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    set: fn(&mut T, &Value) -> Result<(), String>,
) -> Keyword<T> {
    Keyword { section, name, kind, default, set }
}

const PATH: Kind = Kind::Text("a string, an absolute path");
const SYSTEM_USER: Kind = Kind::Text("a string, the name of a user of the system");
const UID: Kind = Kind::Id("a uid, or a string, the name of a user of the system");
const GID: Kind = Kind::Id("a gid, or a string, the name of a group of the system");
const GIDS: Kind = Kind::List("an array of at most 32 gids or names of groups of the system");
const RIGHTS: Kind = Kind::List("an array of names of permissions");
const SECONDS: Kind = Kind::Number(0, 86_400);

/// caisson.toml(5), but for `[[listen]]` and `[anonymous]`.
#[rustfmt::skip]
pub const CONFIG: &[Keyword<Config>] = &[
    //   section        name                              kind            default
    word("",            "users_file",                     PATH,           "\"/etc/caisson/users.toml\"", |c, v| put(&mut c.users_file, v)),
    word("",            "worker_user",                    SYSTEM_USER,    "\"_caisson\"",                |c, v| put(&mut c.fixed.worker_user, v)),
    word("",            "authd_user",                     SYSTEM_USER,    "\"_caisson-authd\"",          |c, v| put(&mut c.fixed.authd_user, v)),
    word("",            "workers",                        Kind::Number(0, 128), "0",                     |c, v| put(&mut c.fixed.workers, v)),
    word("",            "sandbox",                        Kind::OneOf(&["required", "best-effort"]), "\"required\"", sandbox),
    word("",            "control_socket",                 PATH,           "\"/run/caisson/control.sock\"", |c, v| put(&mut c.fixed.control_socket, v)),
    word("",            "program_dir",                    PATH,           UNSET,                         |c, v| put(&mut c.fixed.program_dir, v)),
    word("",            "log_level",                      Kind::OneOf(&["error", "warning", "info", "debug"]), "\"info\"", |c, v| put(&mut c.log_level, v)),
    word("",            "allow_root_accounts",            Kind::Flag,     "false",                       |c, v| put(&mut c.allow_root_accounts, v)),
    word("",            "umask",                          Kind::Number(0, 0o777), "0o022",               |c, v| put(&mut c.umask, v)),
    word("",            "banner",                         Kind::Text("a string of at most 1024 printable bytes, lines separated by \\n"), "\"Caisson\"", |c, v| put(&mut c.ftp.banner, v)),
    word("",            "passive_ports",                  Kind::Text("a string FIRST-LAST, ports from 1024 to 65535"), "\"50000-50999\"", |c, v| put(&mut c.ftp.passive_ports, v)),
    word("",            "passive_address",                Kind::Text("a string, an IPv4 address"), UNSET, |c, v| put(&mut c.ftp.passive_address, v)),
    word("",            "active",                         Kind::Flag,     "true",                        |c, v| put(&mut c.ftp.active, v)),
    word("",            "active_source_port_20",          Kind::Flag,     "false",                       |c, v| put(&mut c.ftp.active_source_port_20, v)),
    word("",            "login_timeout_secs",             SECONDS,        "60",                          |c, v| put(&mut c.ftp.login_timeout_secs, v)),
    word("",            "idle_timeout_secs",              SECONDS,        "300",                         |c, v| put(&mut c.ftp.idle_timeout_secs, v)),
    word("",            "data_connect_timeout_secs",      SECONDS,        "30",                          |c, v| put(&mut c.ftp.data_connect_timeout_secs, v)),
    word("",            "stall_timeout_secs",             SECONDS,        "120",                         |c, v| put(&mut c.ftp.stall_timeout_secs, v)),
    word("",            "max_login_failures",             Kind::Number(1, 100), "3",                     |c, v| put(&mut c.ftp.max_login_failures, v)),
    word("",            "max_sessions",                   Kind::Number(1, 1_000_000), "10000",           |c, v| put(&mut c.max_sessions, v)),
    word("",            "max_sessions_per_account",       Kind::Number(1, 1_000_000), "10000",           |c, v| put(&mut c.max_sessions_per_account, v)),
    word("",            "max_concurrent_password_checks", Kind::Number(0, 64), "0",                      |c, v| put(&mut c.fixed.password_checks, v)),
    word("",            "login_cache_ttl_secs",           SECONDS,        "300",                         |c, v| put(&mut c.auth.login_cache_ttl_secs, v)),
    word("performance", "sendfile",                       Kind::Flag,     "true",                        |c, v| put(&mut c.ftp.sendfile, v)),
    word("performance", "splice",                         Kind::Flag,     "true",                        |c, v| put(&mut c.ftp.splice, v)),
    word("performance", "buffer_pool_bytes",              Kind::Number(1 << 20, 1 << 40), "67108864",    |c, v| put(&mut c.ftp.buffer_pool_bytes, v)),
    word("performance", "transfer_chunk_bytes",           Kind::Number(4096, 1 << 24), "262144",         |c, v| put(&mut c.ftp.transfer_chunk_bytes, v)),
    word("anonymous",   "enabled",                        Kind::Flag,     "false",                       |c, v| put(&mut c.anonymous.enabled, v)),
    word("anonymous",   "home",                           PATH,           UNSET,                         |c, v| put(&mut c.anonymous.account.home, v)),
    word("anonymous",   "uid",                            UID,            UNSET,                         |c, v| { c.anonymous.account.uid = uid(v)?; Ok(()) }),
    word("anonymous",   "gid",                            GID,            UNSET,                         |c, v| { c.anonymous.account.gid = gid(v)?; Ok(()) }),
    word("anonymous",   "permissions",                    RIGHTS,         "[\"read\", \"list\"]",        |c, v| put(&mut c.anonymous.account.permissions, v)),
];

/// `[[listen]]` of caisson.toml(5).
#[rustfmt::skip]
pub const LISTEN: &[Keyword<Listen>] = &[
    word("listen",      "address",                        Kind::Text("a string ADDRESS:PORT, as in \"0.0.0.0:21\" or \"[::]:21\""), REQUIRED, |l, v| put(&mut l.address, v)),
];

/// `[[user]]` of caisson-users(5).
#[rustfmt::skip]
pub const USER: &[Keyword<Entry>] = &[
    word("user",        "name",                           Kind::Text("a string of 1 to 64 bytes without control bytes, / and :"), REQUIRED, |u, v| put(&mut u.name, v)),
    word("user",        "password",                       Kind::Text("a string, an argon2id hash in PHC form"), UNSET, |u, v| { u.hash = phc(v)?; Ok(()) }),
    word("user",        "home",                           PATH,           REQUIRED,                      |u, v| put(&mut u.home, v)),
    word("user",        "uid",                            UID,            REQUIRED,                      |u, v| { u.uid = uid(v)?; Ok(()) }),
    word("user",        "gid",                            GID,            UNSET,                         |u, v| { u.gid = gid(v)?; Ok(()) }),
    word("user",        "groups",                         GIDS,           "[]",                          |u, v| { u.groups = groups(v)?; Ok(()) }),
    word("user",        "permissions",                    RIGHTS,         "[\"all\"]",                   |u, v| put(&mut u.permissions, v)),
    word("user",        "locked",                         Kind::Flag,     "false",                       |u, v| put(&mut u.locked, v)),
];

fn sandbox(config: &mut Config, value: &Value) -> Result<(), String> {
    config.fixed.best_effort = matches!(value, Value::Text(word) if word == "best-effort");
    Ok(())
}
