//! What is valid and will not work as it stands: told as warnings, once with each configuration, and stops nothing.
//!
//! Homes are looked at by a thread of its own, for a network file system may take for ever to answer, and the configuration does
//! not wait for it. What nobody cannot see (a home below a directory that only its owner may search) is not doubted.
//! Not here: what is refused (check.rs).

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use child_ipc::link::monitor_config::WARNINGS;
use child_ipc::types::Blob;
use rustix::process::{Resource, getrlimit};

use crate::{Settings, Users};

/// Homes named at most; how many more there are is told.
const MOST: usize = 5;
/// How long homes may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What has to be asked and made before the seal: the limit, and the thread.
pub(crate) struct Doubts {
    /// `RLIMIT_NOFILE`, which workers inherit as we did; `None`: no limit.
    descriptors: Option<u64>,
    homes: Sender<Vec<(String, PathBuf)>>,
    without: Receiver<Vec<String>>,
}

impl Doubts {
    /// For a process that is not sealed yet.
    pub fn new() -> io::Result<Self> {
        let (homes, asked) = channel::<Vec<(String, PathBuf)>>();
        let (answer, without) = channel();
        thread::Builder::new().spawn(move || {
            if let Ok(homes) = asked.recv() {
                let _ = answer.send(homes.into_iter().filter_map(lacking).collect());
            }
        })?;
        Ok(Doubts { descriptors: getrlimit(Resource::Nofile).current, homes, without })
    }

    /// One line each, at most [`WARNINGS`].
    pub fn about(self, settings: &Settings, users: &Users) -> Vec<Blob<512>> {
        let mut seen = BTreeSet::new();
        let homes = users.iter().filter(|(_, of)| !of.user.locked && seen.insert(&of.user.home));
        let asked = self.homes.send(homes.map(|(name, of)| (name.to_string(), of.user.home.clone())).collect());
        let mut lines = asked.ok().and_then(|()| self.without.recv_timeout(PATIENCE).ok()).unwrap_or_default();
        if let Some(more) = lines.len().checked_sub(MOST).filter(|more| *more > 0) {
            lines.truncate(MOST);
            lines.push(format!("{more} homes more are missing"));
        }
        lines.extend(too_few(self.descriptors, settings.ftp.max_sessions));
        lines.truncate(WARNINGS);
        lines.iter().map(|line| Blob::cut(line.as_bytes())).collect()
    }
}

/// Why nobody can be at home there, if so.
fn lacking((account, home): (String, PathBuf)) -> Option<String> {
    let what = match home.metadata() {
        Ok(found) if found.is_dir() => return None,
        Ok(_) => "is not a directory",
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => "does not exist",
        Err(_) => return None,
    };
    Some(format!("the home of account \"{account}\" {what}, and its logins are refused: {}", home.display()))
}

/// A session has a control and a data connection, and its worker some descriptors more.
fn too_few(limit: Option<u64>, sessions: u32) -> Option<String> {
    let wanted = 2 * u64::from(sessions) + 64;
    let limit = limit.filter(|limit| *limit < wanted)?;
    Some(format!(
        "max_sessions: {sessions} sessions may take {wanted} descriptors, and RLIMIT_NOFILE is {limit}: clients beyond it wait or are \
         refused; raise it (LimitNOFILE= in the unit, ulimit -n), or lower max_sessions"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_doubted_when_the_sessions_allowed_may_need_more() {
        assert_eq!(too_few(None, 1_000_000), None);
        assert_eq!(too_few(Some(20_064), 10_000), None);
        let line = too_few(Some(1024), 10_000).unwrap();
        assert!(line.contains("20064") && line.contains("is 1024") && line.contains("LimitNOFILE="), "{line}");
        assert!(line.len() < 512, "it is cut otherwise");
    }

    #[test]
    fn a_home_is_doubted_when_it_is_missing_or_no_directory() {
        let of = |home: &str| lacking(("bob".into(), home.into()));
        assert_eq!(of("/"), None);
        assert!(
            of("/nonexistent/bob").unwrap().ends_with("does not exist, and its logins are refused: /nonexistent/bob")
        );
        assert!(of("/dev/null/bob").unwrap().contains("account \"bob\" does not exist"));
        assert!(of("/dev/null").unwrap().contains("is not a directory"));
    }
}
