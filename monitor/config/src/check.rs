//! Reads both files and judges them as a whole. All or nothing: one wrong entry, and nothing is loaded.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::{fs::File, path::Path, thread::available_parallelism};

use ipc::types::{Ids, UserName};
use rustix::process::geteuid;

use super::keywords::{CONFIG, LISTEN, USER};
use super::parse::{Source, defaults};
use super::value::uid;
use super::{Config, Entry, User, Users};

/// Longest configuration file, in bytes.
const LONGEST: u64 = 32 << 20;
/// As many accounts as authd takes.
const MOST_USERS: usize = 131_072;

/// Reads caisson.toml(5) at `path` and the users file it names.
pub fn load(path: &Path) -> Result<(Config, Users), String> {
    let source = read(path, "-f")?;
    let config = judge_config(&source)?;
    let mut users = judge_users(&read(&config.users_file, "users_file")?, &config)?;
    if config.anonymous {
        let account = judge(&config.anonymous_account, &config)
            .map_err(|(key, why)| format!("{}: anonymous.{key}: {why}", source.file))?;
        for name in ["anonymous", "ftp"].iter().filter_map(|name| UserName::new(name.as_bytes())) {
            users.entry(name).or_insert(User { any_password: true, ..account.clone() });
        }
    }
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
        let or_cpus = |number: u32, most: u32| if number == 0 { cpus.min(most) } else { number };
        self.fixed.workers = or_cpus(self.fixed.workers, 128);
        self.authd.max_concurrent_password_checks = or_cpus(self.authd.max_concurrent_password_checks, 64);
        self.ftp.buffer_pool_bytes /= u64::from(self.fixed.workers);
    }
}

fn judge_config(source: &Source) -> Result<Config, String> {
    let mut config: Config = defaults(CONFIG);
    for (mut listen, offset) in source.read(CONFIG, ("listen", LISTEN), &mut config)? {
        if config.listen.iter().any(|other| other.address == listen.address) {
            return Err(source.error(offset, "listen.address: listed twice"));
        }
        listen.place = source.place(offset);
        config.listen.push(listen);
    }
    config.fill_in();
    if !(1..=16).contains(&config.listen.len()) {
        let message = "listen.address: expected 1 to 16 sections, as in [[listen]] address = \"0.0.0.0:21\"";
        return Err(source.error(0, message));
    }
    if geteuid().is_root() {
        let of = |name: &str, key: &str| system_ids(name).map_err(|why| source.error(0, format!("{key}: {why}")));
        config.fixed.worker_ids = Some(of(&config.fixed.worker_user, "worker_user")?);
        config.fixed.authd_ids = Some(of(&config.fixed.authd_user, "authd_user")?);
        if config.fixed.worker_user == config.fixed.authd_user {
            return Err(source.error(0, "authd_user: expected another user than worker_user"));
        }
    }
    Ok(config)
}

/// Ids of a system user that runs a process of ours, by name or uid: its primary group only.
fn system_ids(text: &str) -> Result<Ids, String> {
    let uid = uid(text)?.filter(|uid| *uid != 0).ok_or("expected a user without root's rights")?;
    let gid = primary_group(uid).unwrap_or(uid);
    Ok(Ids { uid, gid, groups: Vec::new() })
}

fn primary_group(uid: u32) -> Option<u32> {
    nix::unistd::User::from_uid(uid.into()).ok().flatten().map(|user| user.gid.as_raw())
}

fn judge_users(source: &Source, config: &Config) -> Result<Users, String> {
    let mut users = Users::new();
    for (entry, offset) in source.read(&[], ("user", USER), &mut ())? {
        let user = judge(&entry, config).map_err(|(key, why)| source.error(offset, format!("user.{key}: {why}")))?;
        let name = entry.name.ok_or_else(|| source.error(offset, "user.name: missing"))?;
        if users.insert(name.clone(), user).is_some() {
            return Err(source.error(offset, format!("user.name: \"{name}\" is listed twice")));
        }
    }
    if users.len() > MOST_USERS {
        return Err(source.error(0, format!("user: expected at most {MOST_USERS} accounts")));
    }
    Ok(users)
}

/// Makes an account of an entry, or says which keyword is wrong.
fn judge(entry: &Entry, config: &Config) -> Result<User, (&'static str, String)> {
    let me = geteuid();
    let uid = entry.uid.ok_or(("uid", "missing; expected whom the account's files belong to".to_owned()))?;
    let own = [&config.fixed.worker_ids, &config.fixed.authd_ids];
    let wrong = if entry.user.home.as_os_str().is_empty() {
        Some(("home", "missing; expected the directory the account sees as /".to_owned()))
    } else if uid == 0 && !config.allow_root_accounts {
        Some(("uid", "0 is root; refused unless allow_root_accounts = true in caisson.toml(5)".to_owned()))
    } else if own.into_iter().flatten().any(|ids| ids.uid == uid) {
        Some(("uid", format!("{uid} is worker_user or authd_user, which no account may share")))
    } else if !me.is_root() && me.as_raw() != uid {
        Some(("uid", format!("caissond was not started by root and can serve its own uid only, {}", me.as_raw())))
    } else {
        None
    };
    wrong.map_or(Ok(()), Err)?;
    let gid = entry.gid.or_else(|| primary_group(uid));
    let gid = gid.ok_or_else(|| ("gid", format!("missing; the system has no user {uid} to take it from")))?;
    Ok(User { ids: Some(Ids { uid, gid, groups: entry.groups.clone() }), ..entry.user.clone() })
}

/// Reads a file that only root, or whoever runs us, may write.
fn read(path: &Path, setting: &str) -> Result<Source, String> {
    let file = path.display().to_string();
    let fail = |why: String| format!("{file}: {why} (named by {setting})");
    let open = File::open(path).map_err(|e| fail(e.to_string()))?;
    let found = open.metadata().map_err(|e| fail(e.to_string()))?;
    if !found.is_file() || found.len() > LONGEST {
        return Err(fail(format!("not a regular file of at most {LONGEST} bytes")));
    }
    if found.uid() != 0 && found.uid() != geteuid().as_raw() {
        return Err(fail(format!("belongs to uid {}, who could grant anything; chown it to root", found.uid())));
    }
    if found.mode() & 0o022 != 0 {
        return Err(fail(format!("mode {:04o} lets others write it; chmod go-w", found.mode() & 0o7777)));
    }
    let mut text = String::new();
    open.take(LONGEST).read_to_string(&mut text).map_err(|e| fail(e.to_string()))?;
    Ok(Source { file, text })
}
