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
use ipc::{Received, table};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use crate::{monitor::Monitor, spawn::Child, table::of_config};

/// Longest file, in bytes.
const LONGEST: u64 = 32 << 20;
/// As many accounts as authd takes.
const MOST_USERS: usize = 131_072;
/// Whom caisson-config runs as when root starts it: nobody.
const NOBODY: u32 = 65_534;

/// Every account by name.
pub(crate) type Users = BTreeMap<UserName, User>;
pub(crate) type ConfigChild = Child<ToConfig, FromConfig>;
/// What a reading came to; the error is one line.
pub(crate) type Outcome = Result<Fresh, String>;

/// A configuration that may be taken over.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub config: Config,
    pub users: Users,
    /// The table of names and hashes, for authd: root never looks into it.
    pub hashes: OwnedFd,
    pub weaker: String,
    pub warnings: Vec<Blob<512>>,
}

/// Starts caisson-config on the file; events of its link carry `id`.
pub(crate) fn start(m: &Monitor, id: u32) -> Result<ConfigChild, String> {
    let file = open(&m.file, "-f")?;
    let child = ConfigChild::start(("caisson-config", None), "config".to_owned(), &m.epoll, id, "");
    let mut child = child.map_err(|e| format!("caisson-config: {e}"))?;
    let ids = geteuid().is_root().then(|| Ids { uid: NOBODY, gid: NOBODY, groups: Vec::new() });
    // Whether `sandbox` is "best-effort" is not known before it has been read. What is missing here, the others miss too.
    let confine = Confine { ids, best_effort: true };
    let name = Blob::cut(m.file.as_os_str().as_bytes());
    child.send(ToConfig::Start(ConfigStart { build: Build::THIS, confine, file: name }), vec![file]);
    Ok(child)
}

/// Takes what it has said; `None`: it is not done.
pub(crate) fn hear(child: &mut ConfigChild) -> Option<Outcome> {
    let Received { record, fds } = child.recv()?;
    if let Err(breach) = of_config(&record).permit(child.ready, false) {
        child.kill(&breach.to_string());
        return None;
    }
    match record {
        FromConfig::UsersFile(path) => {
            child.ready = true;
            let opened = open(&path, "users_file").map(|file| child.send(ToConfig::Users, vec![file]));
            opened.err().map(Err)
        }
        FromConfig::Done(loaded) => Some(take(*loaded, fds)),
        FromConfig::Refused(why) => Some(Err(String::from_utf8_lossy(why.as_bytes()).replace(char::is_control, " "))),
    }
}

/// Reads the accounts, and checks all.
fn take(Loaded { config, weaker, warnings }: Loaded, fds: Vec<OwnedFd>) -> Outcome {
    let fail = |what: String| format!("caisson-config gave {what}");
    let [accounts, hashes] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| fail("no tables".to_owned()))?;
    let accounts: Vec<Account> = table::read(accounts, MOST_USERS).map_err(|e| fail(e.to_string()))?;
    let users = accounts.into_iter().map(|account| (account.name, account.user)).collect();
    check(&config, &users).map_err(|what| fail(what.to_owned()))?;
    Ok(Fresh { config, users, hashes, weaker: weaker.to_string(), warnings })
}

/// Checks what root has to see to, whoever has checked it before. The error names what is wrong.
fn check(config: &Config, users: &Users) -> Result<(), &'static str> {
    let root = geteuid().is_root();
    let runs_as_root = |ids: &Option<Ids>| root && ids.as_ref().is_none_or(|ids| ids.uid == 0);
    if runs_as_root(&config.fixed.worker_ids) || runs_as_root(&config.fixed.authd_ids) {
        return Err("a worker_user or authd_user that is root");
    }
    if users.values().any(|user| runs_as_root(&user.ids)) && !config.allow_root_accounts {
        return Err("an account that is root, which allow_root_accounts does not allow");
    }
    let ports = config.passive_ports;
    let bounded = (1..=16).contains(&config.listen.len()) && (1..=128).contains(&config.fixed.workers);
    if !bounded || ports.first < 1024 || ports.last < ports.first {
        return Err("listeners, workers or passive_ports out of range");
    }
    Ok(())
}

/// Opens a file that only root, or whoever runs us, may write; `setting` names it.
pub(crate) fn open(path: &Path, setting: &str) -> Result<OwnedFd, String> {
    let fail = |why: String| format!("{}: {why} (named by {setting})", path.display());
    // A FIFO would wait for somebody to write to it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|e| fail(e.to_string()))?);
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use ipc::link::monitor_config::Fixed;

    use super::*;

    #[test]
    fn a_named_pipe_is_refused_and_not_waited_for() {
        let path = std::env::temp_dir().join(format!("caisson-pipe-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let refused = open(&path, "users_file").unwrap_err();
        fs::remove_file(&path).unwrap();
        assert!(refused.contains("not a regular file"), "{refused}");
    }

    #[test]
    fn files_that_others_may_write_are_refused() {
        let path = std::env::temp_dir().join(format!("caisson-open-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let error = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            open(&path, "users_file").map_or_else(|why| why, |_| String::new())
        };
        assert_eq!(error(0o600), "");
        assert!(error(0o622).ends_with("mode 0622 lets others write it; chmod go-w (named by users_file)"));
        assert!(error(0o602).contains("mode 0602"));
        if geteuid().is_root() {
            chown(&path, Some(4711), None).unwrap();
            assert!(error(0o600).contains("belongs to uid 4711"));
        }
        fs::remove_file(&path).unwrap();
        assert!(open(&path, "-f").unwrap_err().contains("(named by -f)"));
        assert!(open(Path::new("/"), "-f").unwrap_err().contains("not a regular file"));
    }

    #[test]
    fn what_only_root_can_see_to_is_checked_whoever_has_checked_it_before() {
        let ids = |uid| Some(Ids { uid, gid: 1, groups: Vec::new() });
        let right = Config {
            listen: vec![ipc::link::monitor_config::Listen {
                address: ([127, 0, 0, 1], 21).into(),
                place: (1, 1),
                proxied: false,
            }],
            fixed: Fixed { worker_ids: ids(1), authd_ids: ids(2), workers: 1, ..Fixed::default() },
            passive_ports: ipc::link::monitor_config::Ports { first: 1024, last: 1024 },
            ..Config::default()
        };
        assert_eq!(check(&right, &Users::default()), Ok(()));
        let wrong = |change: fn(&mut Config)| {
            let mut config = right.clone();
            change(&mut config);
            check(&config, &Users::default()).is_err()
        };
        assert!(wrong(|c| c.listen.clear()) && wrong(|c| c.fixed.workers = u32::MAX));
        assert!(wrong(|c| c.passive_ports.last = 5) && wrong(|c| c.passive_ports.first = 21));
        if geteuid().is_root() {
            assert!(wrong(|c| c.fixed.worker_ids = None));
            let root = Users::from([(UserName::new(b"toor").unwrap(), User { ids: ids(0), ..User::default() })]);
            assert!(check(&right, &root).is_err());
            assert_eq!(check(&Config { allow_root_accounts: true, ..right }, &root), Ok(()));
        }
    }
}
