//! Reads both files and judges them as a whole. All or nothing: one wrong entry, and nothing is loaded.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread::available_parallelism,
};

use ipc::types::{Ids, Permissions, UserName};
use rustix::process::geteuid;

use super::{
    Config, Entry, User,
    keywords::{CONFIG, LISTEN, USER},
    parse::{ConfigError, Source, defaults},
};

/// Every account by name.
pub(crate) type Users = BTreeMap<UserName, User>;

/// Longest configuration file, in bytes: 50,000 accounts and more.
const LONGEST: u64 = 32 << 20;

/// Reads caisson.toml(5) at `path` and the users file it names.
pub fn load(path: &Path) -> Result<(Config, Users), ConfigError> {
    let config = load_config(&read(path, "-f")?)?;
    let source = read(&config.users_file, "users_file")?;
    let users = load_users(&source, &config)?;
    Ok((config, users))
}

impl Config {
    /// The defaults, with the numbers that depend on the machine filled in.
    pub fn defaults() -> Config {
        let mut config: Config = defaults(CONFIG);
        config.fill_in();
        config
    }

    fn fill_in(&mut self) {
        let cpus = available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
        if self.fixed.workers == 0 {
            self.fixed.workers = cpus.min(128);
        }
        if self.fixed.password_checks == 0 {
            self.fixed.password_checks = cpus.min(64);
        }
    }
}

/// Judges caisson.toml(5).
pub(crate) fn load_config(source: &Source) -> Result<Config, ConfigError> {
    let document = source.parse()?;
    let mut config: Config = defaults(CONFIG);
    source.read_document(document.get_ref(), CONFIG, &["listen"], &mut config)?;
    config.fill_in();
    for (mut listen, offset) in source.read_repeated(document.get_ref(), "listen", LISTEN)? {
        if config.listen.iter().any(|other| other.address == listen.address) {
            return Err(source.error(offset, "listen.address: listed twice"));
        }
        listen.place = source.place(offset);
        config.listen.push(listen);
    }
    if config.listen.is_empty() {
        return Err(
            source.error(0, "listen.address: missing; say where to listen, as in [[listen]] address = \"0.0.0.0:21\"")
        );
    }
    if config.listen.len() > 16 {
        return Err(source.error(0, "listen: expected at most 16 sections [[listen]]"));
    }
    if geteuid().is_root() {
        let of = |name: &str, key: &str| system_ids(name).map_err(|why| source.error(0, format!("{key}: {why}")));
        config.fixed.worker_ids = Some(of(&config.fixed.worker_user, "worker_user")?);
        config.fixed.authd_ids = Some(of(&config.fixed.authd_user, "authd_user")?);
    }
    Ok(config)
}

/// Ids of a system user that runs a process of ours: its primary group only.
pub fn system_ids(name: &str) -> Result<Ids, String> {
    match nix::unistd::User::from_name(name) {
        Ok(Some(user)) if user.uid.is_root() => Err(format!("{name:?} is root; name a user without rights")),
        Ok(Some(user)) => Ok(Ids { uid: user.uid.as_raw(), gid: user.gid.as_raw(), groups: Vec::new() }),
        Ok(None) => Err(format!(
            "the system has no user {name:?}; create it: useradd --system --shell /usr/sbin/nologin {name}"
        )),
        Err(errno) => Err(format!("the user {name:?} cannot be looked up: {errno}")),
    }
}

/// Judges caisson-users(5), and adds the anonymous accounts if the configuration wants them.
pub(crate) fn load_users(source: &Source, config: &Config) -> Result<Users, ConfigError> {
    let document = source.parse()?;
    source.read_document::<Entry>(document.get_ref(), &[], &["user"], &mut Entry::default())?;
    let mut users = Users::new();
    for (entry, offset) in source.read_repeated(document.get_ref(), "user", USER)? {
        let name = entry.name.clone().ok_or_else(|| source.error(offset, "user.name: missing"))?;
        let user = judge(&entry, config).map_err(|(key, why)| source.error(offset, format!("user.{key}: {why}")))?;
        if users.insert(name.clone(), user).is_some() {
            return Err(source.error(offset, format!("user.name: \"{name}\" is listed twice")));
        }
    }
    if config.anonymous.enabled {
        let mut user = judge(&config.anonymous.account, config)
            .map_err(|(key, why)| ConfigError(format!("caisson.toml: anonymous.{key}: {why}")))?;
        user.any_password = true;
        for name in ["anonymous", "ftp"].iter().filter_map(|name| UserName::new(name.as_bytes())) {
            users.entry(name).or_insert_with(|| user.clone());
        }
    }
    Ok(users)
}

/// Makes an account of an entry, or says which keyword is wrong.
fn judge(entry: &Entry, config: &Config) -> Result<User, (&'static str, String)> {
    let uid = entry.uid.ok_or(("uid", "missing; expected whom the account's files belong to".to_owned()))?;
    if entry.home == PathBuf::new() {
        return Err(("home", "missing; expected the directory the account sees as /".into()));
    }
    if uid == 0 && !config.allow_root_accounts {
        return Err(("uid", "0 is root; refused unless allow_root_accounts = true in caisson.toml(5)".into()));
    }
    let ours = [&config.fixed.worker_ids, &config.fixed.authd_ids];
    if ours.into_iter().flatten().any(|ids| ids.uid == uid) {
        return Err(("uid", format!("{uid} is worker_user or authd_user, which no account may share")));
    }
    let me = geteuid();
    if !me.is_root() && me.as_raw() != uid {
        return Err((
            "uid",
            format!("caissond was not started by root and can serve its own uid only, {}", me.as_raw()),
        ));
    }
    let gid = match entry.gid {
        Some(gid) => gid,
        None => primary_group(uid)
            .ok_or_else(|| ("gid", format!("missing; the system has no user {uid} to take it from")))?,
    };
    Ok(User {
        hash: entry.hash.clone(),
        locked: entry.locked,
        any_password: false,
        ids: Ids { uid, gid, groups: entry.groups.clone() },
        home: entry.home.clone(),
        permissions: entry.permissions.unwrap_or(Permissions::NONE),
    })
}

fn primary_group(uid: u32) -> Option<u32> {
    nix::unistd::User::from_uid(uid.into()).ok().flatten().map(|user| user.gid.as_raw())
}

/// Reads a file that only root, or whoever runs us, may write.
fn read(path: &Path, setting: &str) -> Result<Source, ConfigError> {
    let file = path.display().to_string();
    let fail = |why: &dyn std::fmt::Display| ConfigError(format!("{file}: {why} (named by {setting})"));
    let mut open = File::open(path).map_err(|e| fail(&e))?;
    let found = open.metadata().map_err(|e| fail(&e))?;
    if !found.is_file() {
        return Err(fail(&"not a regular file"));
    }
    if found.uid() != 0 && found.uid() != geteuid().as_raw() {
        return Err(fail(&format!("belongs to uid {}, who could grant anything; chown it to root", found.uid())));
    }
    if found.mode() & 0o022 != 0 {
        return Err(fail(&format!("mode {:04o} lets others write it; chmod go-w", found.mode() & 0o7777)));
    }
    let mut text = String::new();
    let length = open.by_ref().take(LONGEST + 1).read_to_string(&mut text).map_err(|e| fail(&e))?;
    if length as u64 > LONGEST {
        return Err(fail(&format!("longer than {LONGEST} bytes")));
    }
    Ok(Source { file, text })
}
