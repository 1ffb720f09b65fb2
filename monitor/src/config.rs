//! Has the configuration read by caisson-config: root opens the two files and checks who may write them, passes the descriptors,
//! and takes what comes back: everything, or one line that says what is wrong.
//!
//! Runs as root. Reads from: caisson-config (hostile as a sender of records; what it says of accounts counts as the files' word).
//! Root's own to see to: nobody runs as root by it, counts are bounded.
//! Not here: keywords, TOML, names of users (monitor/config); what follows from a new configuration (reload.rs).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::{fd::OwnedFd, unix::ffi::OsStrExt, unix::fs::MetadataExt};
use std::path::Path;

use ipc::link::Confine;
use ipc::link::monitor_config::{Account, Config, ConfigStart, FromConfig, Loaded, ToConfig, User};
use ipc::types::{Blob, Build, Ids, UserName};
use ipc::{Breach, Received, table};
use rustix::process::geteuid;

use crate::{monitor::Monitor, spawn, spawn::Child, table::of_config};

/// Longest file, in bytes.
const LONGEST: u64 = 32 << 20;
/// As many accounts as authd takes.
const MOST_USERS: usize = 131_072;
/// Whom caisson-config runs as when root starts it: nobody.
const NOBODY: u32 = 65_534;

/// Every account by name.
pub(crate) type Users = BTreeMap<UserName, User>;
pub(crate) type ConfigChild = Child<ToConfig, FromConfig>;

/// A configuration that may be taken over.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub config: Config,
    pub users: Users,
    /// The table of names and hashes, for authd: root never looks into it.
    pub hashes: OwnedFd,
    pub weaker: String,
}

/// Starts caisson-config on the file; events of its link carry `id`.
pub(crate) fn start(m: &Monitor, id: u32) -> Result<ConfigChild, String> {
    let file = open(&m.file, "-f")?;
    let program = spawn::find("caisson-config", None, "../libexec/caisson")?;
    let child = ConfigChild::start(&program, "config".to_owned(), &m.epoll, id, "");
    let mut child = child.map_err(|e| format!("{}: {e}", program.display()))?;
    let ids = geteuid().is_root().then(|| Ids { uid: NOBODY, gid: NOBODY, groups: Vec::new() });
    // Whether `sandbox` is "best-effort" is not known before it has been read. What is missing here, the others miss too.
    let confine = Confine { ids, best_effort: true };
    let name = Blob::cut(m.file.as_os_str().as_bytes());
    child.send(ToConfig::Start(ConfigStart { build: Build::THIS, confine, file: name }), vec![file]);
    Ok(child)
}

/// Takes what it has said; `None`: it is not done.
pub(crate) fn hear(child: &mut ConfigChild) -> Option<Result<Fresh, String>> {
    while let Some(received) = child.recv() {
        match judge(child, received) {
            Ok(None) => {}
            Ok(Some(outcome)) => return Some(outcome),
            Err(breach) => child.kill(&breach.to_string()),
        }
    }
    None
}

fn judge(
    child: &mut ConfigChild,
    Received { record, fds }: Received<FromConfig>,
) -> Result<Option<Result<Fresh, String>>, Breach> {
    of_config(&record).permit(child.ready, false)?;
    match record {
        FromConfig::UsersFile(path) => match open(&path, "users_file") {
            Ok(file) => {
                child.ready = true;
                child.send(ToConfig::Users, vec![file]);
            }
            Err(why) => return Ok(Some(Err(why))),
        },
        FromConfig::Done(loaded) => return Ok(Some(take(*loaded, fds))),
        FromConfig::Refused(why) => {
            let line = String::from_utf8_lossy(why.as_bytes()).replace(char::is_control, " ");
            return Ok(Some(Err(line)));
        }
    }
    Ok(None)
}

/// Checks what root has to see to, whoever has checked the rest.
fn take(Loaded { config, weaker }: Loaded, fds: Vec<OwnedFd>) -> Result<Fresh, String> {
    let fail = |what: &str| format!("caisson-config gave {what}");
    let [accounts, hashes] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| fail("no tables"))?;
    let accounts: Vec<Account> = table::read(accounts, MOST_USERS).map_err(|e| fail(&e.to_string()))?;
    let users: Users = accounts.into_iter().map(|account| (account.name, account.user)).collect();
    let root = geteuid().is_root();
    let runs_as_root = |ids: &Option<Ids>| root && ids.as_ref().is_none_or(|ids| ids.uid == 0);
    if runs_as_root(&config.fixed.worker_ids) || runs_as_root(&config.fixed.authd_ids) {
        return Err(fail("a worker_user or authd_user that is root"));
    }
    if users.values().any(|user| runs_as_root(&user.ids)) && !config.allow_root_accounts {
        return Err(fail("an account that is root, which allow_root_accounts does not allow"));
    }
    let ports = config.passive_ports;
    let bounded = (1..=16).contains(&config.listen.len()) && (1..=128).contains(&config.fixed.workers);
    if !bounded || ports.first < 1024 || ports.last < ports.first {
        return Err(fail("listeners, workers or passive_ports out of range"));
    }
    Ok(Fresh { config, users, hashes, weaker: weaker.to_string() })
}

/// Opens a file that only root, or whoever runs us, may write; `setting` names it.
fn open(path: &Path, setting: &str) -> Result<OwnedFd, String> {
    let fail = |why: String| format!("{}: {why} (named by {setting})", path.display());
    let file = File::open(path).map_err(|e| fail(e.to_string()))?;
    let found = file.metadata().map_err(|e| fail(e.to_string()))?;
    if !found.is_file() || found.len() > LONGEST {
        return Err(fail(format!("not a regular file of at most {LONGEST} bytes")));
    }
    if found.uid() != 0 && found.uid() != geteuid().as_raw() {
        return Err(fail(format!("belongs to uid {}, who could grant anything; chown it to root", found.uid())));
    }
    if found.mode() & 0o022 != 0 {
        return Err(fail(format!("mode {:04o} lets others write it; chmod go-w", found.mode() & 0o7777)));
    }
    Ok(file.into())
}
