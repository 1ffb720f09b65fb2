//! The keywords: each once, with section, type, range and default. Parser, errors and manual pages derive from these rows.
//!
//! caisson.toml(5) and caisson-users(5) list them in this order; tests/man.rs compares both ways.

use child_ipc::{link::settings::Require, types::HostName};

use crate::value::{
    absolute, address, banner, certificate_login, file, fingerprints, gid, gids, hash, hosts, level, networks,
    permissions, ports, require, resumption, security, set, uid, zone,
};
use crate::{Entry, Part, Settings};

/// A keyword of a section that is read into a `T`.
pub struct Keyword<T: 'static> {
    /// The section it stands in; empty for the top of the file.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its default as TOML, or [`REQUIRED`], or [`UNSET`].
    pub default: &'static str,
    /// What it accepts, and where that goes.
    pub kind: Kind<T>,
}

/// What a keyword accepts. Where the setter can fail, an empty error means: not what the words say.
pub enum Kind<T: 'static> {
    /// `true` or `false`.
    Flag(fn(&mut T, bool)),
    /// An integer in a range, both ends included.
    Number(u64, u64, fn(&mut T, u64)),
    /// A string; the words say which.
    Text(&'static str, fn(&mut T, &str) -> Result<(), String>),
    /// An integer or a string, handed on as text: an id or a name.
    Id(&'static str, fn(&mut T, &str) -> Result<(), String>),
    /// An array of those.
    List(&'static str, fn(&mut T, &[String]) -> Result<(), String>),
}

/// The default of a keyword that must be given.
pub const REQUIRED: &str = "required";
/// The default of a keyword that may be left out and then has no value.
pub const UNSET: &str = "unset";

impl<T> Kind<T> {
    /// "an integer from 0 to 128", and so on: the wording of errors and of the manual pages.
    pub fn expected(&self) -> String {
        match self {
            Kind::Flag(_) => "true or false".to_owned(),
            Kind::Number(least, most, _) => format!("an integer from {least} to {most}"),
            Kind::Text(words, _) | Kind::Id(words, _) | Kind::List(words, _) => (*words).to_owned(),
        }
    }
}

const FINGERPRINTS: &str = "an array of at most 8 strings, SHA-256 of a certificate in 64 hexadecimal digits";
const BANNER: &str = "a string of at most 1024 printable bytes, lines separated by \\n";
const HOSTS: &str = "an array of at most 16 names of [[host]] sections of caisson.toml";
const IPV4: &str = "a string, an IPv4 address";
const FILE: &str = "a string, an absolute path of less than 1024 bytes";
const PATH: &str = "a string, an absolute path";
const UID: &str = "a uid, or a string, the name of a user of the system";
const GID: &str = "a gid, or a string, the name of a group of the system";
const GIDS: &str = "an array of at most 32 gids or names of groups of the system";
const NETWORKS: &str = "an array of 1 to 64 addresses or networks, as in \"192.0.2.7\" or \"2001:db8::/32\"";
const RIGHTS: &str = "an array of names of permissions";
const REQUIRE: &str = "\"no\" or \"login\" or \"data\"";
const RESUMPTION: &str = "\"required\" or \"if-offered\" or \"off\"";
const RANGE: &str = "a string FIRST-LAST, ports from 1024 to 65535";
const DAY: u64 = 86_400;

use Kind::{Flag, Id, List, Number, Text};

const fn word<T>(section: &'static str, name: &'static str, default: &'static str, kind: Kind<T>) -> Keyword<T> {
    Keyword { section, name, default, kind }
}

/// caisson.toml(5), but for [`REPEATED`]. Ranges make the casts exact.
#[rustfmt::skip]
pub const CONFIG: &[Keyword<Settings>] = &[
    word("", "users_file",            "\"/etc/caisson/users.toml\"", Text(PATH, |c, v| set(&mut c.users_file, absolute(v)))),
    word("", "worker_user",           "\"_caisson\"",       Id(UID, |c, v| set(&mut c.worker_user, Some(v.to_owned())))),
    word("", "authd_user",            "\"_caisson-authd\"", Id(UID, |c, v| set(&mut c.authd_user, Some(v.to_owned())))),
    word("", "workers",               "0",       Number(0, 128, |c, n| c.config.fixed.workers = n as u32)),
    word("", "sandbox",               "\"required\"", Text("\"required\" or \"best-effort\"", |c, v| set(&mut c.config.fixed.best_effort, enforcement(v)))),
    word("", "control_socket",        "\"/run/caisson/control.sock\"", Text("a string, an absolute path, or empty for none", |c, v| set(&mut c.config.fixed.control_socket, if v.is_empty() { Some(None) } else { absolute(v).map(Some) }))),
    word("", "program_dir",           UNSET,     Text(PATH, |c, v| set(&mut c.config.fixed.program_dir, absolute(v).map(Some)))),
    word("", "log_level",             "\"info\"", Text("\"error\" or \"warning\" or \"info\" or \"debug\"", |c, v| set(&mut c.ftp.log_level, level(v)))),
    word("", "allow_root_accounts",   "false",   Flag(|c, on| c.config.allow_root_accounts = on)),
    word("", "umask",                 "0o022",   Number(0, 0o777, |c, n| c.brokers.umask = n as u16)),
    word("", "atomic_uploads",        "false",   Flag(|c, on| c.brokers.atomic_uploads = on)),
    word("", "sync_uploads",          "false",   Flag(|c, on| c.ftp.sync_uploads = on)),
    word("", "listing_time",          "\"utc\"", Text("\"utc\" or \"local\" or a string, the name of a time zone", |c, v| { c.brokers.listing_zone = zone(v)?; Ok(()) })),
    word("", "banner",                "\"Caisson\"", Text(BANNER, |c, v| set(&mut c.ftp.banner, banner(v)))),
    word("", "passive_ports",         "\"50000-50999\"", Text(RANGE, |c, v| set(&mut c.config.passive_ports, ports(v)))),
    word("", "passive_address",       UNSET,     Text(IPV4, |c, v| set(&mut c.ftp.passive_address, v.parse().ok().map(Some)))),
    word("", "active",                "true",    Flag(|c, on| c.ftp.active = on)),
    word("", "active_source_port_20", "false",   Flag(|c, on| c.config.active_source_port_20 = on)),
    word("", "tls_required",          "\"no\"",  Text(REQUIRE, |c, v| set(&mut c.tls.require, require(v)))),
    word("", "data_resumption",       "\"if-offered\"", Text(RESUMPTION, |c, v| set(&mut c.tls.resumption, resumption(v)))),
    word("", "login_timeout_secs",    "60",      Number(0, DAY, |c, n| c.ftp.login_timeout_secs = n as u32)),
    word("", "idle_timeout_secs",     "300",     Number(0, DAY, |c, n| c.ftp.idle_timeout_secs = n as u32)),
    word("", "data_connect_timeout_secs", "30",  Number(0, DAY, |c, n| c.ftp.data_connect_timeout_secs = n as u32)),
    word("", "stall_timeout_secs",    "120",     Number(0, DAY, |c, n| c.ftp.stall_timeout_secs = n as u32)),
    word("", "session_timeout_secs",  "0",       Number(0, 31 * DAY, |c, n| c.ftp.session_timeout_secs = n as u32)),
    word("", "max_login_failures",    "3",       Number(1, 100, |c, n| c.ftp.max_login_failures = n as u32)),
    word("", "max_sessions",          "10000",   Number(1, 1_000_000, |c, n| c.ftp.max_sessions = n as u32)),
    word("", "max_sessions_per_address", "1000", Number(0, 1_000_000, |c, n| c.ftp.max_sessions_per_address = n as u32)),
    word("", "address_prefix_ipv4",   "32",      Number(1, 32, |c, n| c.ftp.address_prefixes.0 = n as u8)),
    word("", "address_prefix_ipv6",   "64",      Number(1, 128, |c, n| c.ftp.address_prefixes.1 = n as u8)),
    word("", "max_sessions_per_account", "10000", Number(1, 1_000_000, |c, n| c.config.max_sessions_per_account = n as u32)),
    word("", "max_concurrent_password_checks", "0", Number(0, 64, |c, n| c.config.authd.max_concurrent_password_checks = n as u32)),
    word("", "login_cache_ttl_secs",  "300",     Number(0, DAY, |c, n| c.config.authd.login_cache_ttl_secs = n as u32)),
    word("performance", "sendfile",   "true",    Flag(|c, on| c.ftp.sendfile = on)),
    word("performance", "splice",     "true",    Flag(|c, on| c.ftp.splice = on)),
    word("performance", "buffer_pool_bytes", "67108864", Number(1 << 20, 1 << 40, |c, n| c.ftp.buffer_pool_bytes = n)),
    word("performance", "transfer_chunk_bytes", "262144", Number(4096, 1 << 24, |c, n| c.ftp.transfer_chunk_bytes = n as u32)),
    word("anonymous", "enabled",      "false",   Flag(|c, on| c.anonymous = on)),
    word("anonymous", "home",         UNSET,     Text(PATH, |c, v| set(&mut c.anonymous_account.account.user.home, absolute(v)))),
    word("anonymous", "uid",          UNSET,     Id(UID, |c, v| set(&mut c.anonymous_account.uid, Some(uid(v)?)))),
    word("anonymous", "gid",          UNSET,     Id(GID, |c, v| set(&mut c.anonymous_account.gid, Some(gid(v)?)))),
    word("anonymous", "permissions",  "[\"read\", \"list\"]", List(RIGHTS, |c, v| set(&mut c.anonymous_account.account.user.permissions, permissions(v)))),
    word("anonymous", "hosts",        "[]",      List(HOSTS, |c, v| set(&mut c.anonymous_account.account.hosts, hosts(v)))),
];

/// The sections of caisson.toml(5) that may be repeated.
#[rustfmt::skip]
pub const REPEATED: &[Keyword<Part>] = &[
    word("listen", "address",         REQUIRED,  Text("a string ADDRESS:PORT, as in \"0.0.0.0:21\" or \"[::]:21\"", |l, v| set(&mut l.address, address(v).map(Some)))),
    word("listen", "proxies",         UNSET,     List(NETWORKS, |l, v| set(&mut l.proxies, Some(networks(v)?)))),
    word("listen", "tls",             UNSET,     Text("\"no\" or \"explicit\" or \"implicit\"", |l, v| set(&mut l.tls, security(v).map(Some)))),
    word("certificate", "certificate", REQUIRED, Text(FILE, |c, v| set(&mut c.certificate, file(v).map(Some)))),
    word("certificate", "key",        REQUIRED,  Text(FILE, |c, v| set(&mut c.key, file(v).map(Some)))),
    word("passive", "clients",        REQUIRED,  List(NETWORKS, |p, v| set(&mut p.clients, Some(networks(v)?)))),
    word("passive", "address",        UNSET,     Text(IPV4, |p, v| set(&mut p.external, v.parse().ok().map(Some)))),
    word("network", "clients",        REQUIRED,  List(NETWORKS, |n, v| set(&mut n.clients, Some(networks(v)?)))),
    word("network", "tls_required",   UNSET,     Text(REQUIRE, |n, v| set(&mut n.require, require(v).map(Some)))),
    word("network", "data_resumption", UNSET,    Text(RESUMPTION, |n, v| set(&mut n.resumption, resumption(v).map(Some)))),
    word("host", "name",              REQUIRED,  Text("a string, a host name as clients write it", |h, v| set(&mut h.name, HostName::new(v.as_bytes()).map(Some)))),
    word("host", "banner",            UNSET,     Text(BANNER, |h, v| set(&mut h.banner, banner(v).map(Some)))),
];

/// `[[user]]` of caisson-users(5).
#[rustfmt::skip]
pub const USER: &[Keyword<Entry>] = &[
    word("user", "name",              REQUIRED,  Text("a string of 1 to 64 bytes without control bytes, / and :", |e, v| set(&mut e.name, child_ipc::types::UserName::new(v.as_bytes()).map(Some)))),
    word("user", "password",          UNSET,     Text("a string, an argon2id hash in PHC form", |e, v| set(&mut e.account.hash, Some(hash(v)?)))),
    word("user", "certificate_login", "\"no\"",  Text("\"no\" or \"second-factor\" or \"login\"", |e, v| set(&mut e.account.certificate_login, certificate_login(v)))),
    word("user", "certificates",      "[]",      List(FINGERPRINTS, |e, v| set(&mut e.account.certificates, Some(fingerprints(v)?)))),
    word("user", "tls_required",      "\"no\"",  Text(REQUIRE, |e, v| set(&mut e.account.user.tls_required, require(v).map(Require::number)))),
    word("user", "home",              REQUIRED,  Text(PATH, |e, v| set(&mut e.account.user.home, absolute(v)))),
    word("user", "uid",               REQUIRED,  Id(UID, |e, v| set(&mut e.uid, Some(uid(v)?)))),
    word("user", "gid",               UNSET,     Id(GID, |e, v| set(&mut e.gid, Some(gid(v)?)))),
    word("user", "groups",            "[]",      List(GIDS, |e, v| set(&mut e.groups, Some(gids(v)?)))),
    word("user", "permissions",       "[\"all\"]", List(RIGHTS, |e, v| set(&mut e.account.user.permissions, permissions(v)))),
    word("user", "hosts",             "[]",      List(HOSTS, |e, v| set(&mut e.account.hosts, hosts(v)))),
    word("user", "locked",            "false",   Flag(|e, on| e.account.user.locked = on)),
];

fn enforcement(word: &str) -> Option<bool> {
    ["required", "best-effort"].iter().position(|known| *known == word).map(|at| at == 1)
}
