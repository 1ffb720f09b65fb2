//! Starts a child: fork and exec of its own program, its link as descriptor 0, nothing else but a pipe for its last words.
//!
//! Everything the monitor opens is close-on-exec, the environment holds tunables of the C library at most, and signals stay blocked in children: only the
//! monitor is asked to stop, and it asks them. What a child may do is its first record's to say and sandbox/'s to enforce.
//! Trusts: the programs beside our own, in `program_dir`, or in ../libexec/caisson from there.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::{rc::Rc, time::Instant};

use ipc::link::{Ready, log::Gate};
use ipc::peer::{CLOSED, Peer};
use ipc::{Channel, Received, Record};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process};

use crate::log::Log;

/// A program of a child, and where it is looked for.
pub(crate) type From<'a> = (&'a str, Option<&'a Path>);
/// Where programs of children are that are not beside caissond.
pub(crate) const LIBEXEC: &str = "../libexec/caisson";

/// Finds a program in `dir`; without it, beside caissond or in `other` from there. The error names program and remedy.
pub(crate) fn find(name: &str, dir: Option<&Path>, other: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("/proc/self/exe: {e}; mount /proc"))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let dirs = dir.map_or_else(|| vec![beside.to_owned(), beside.join(other)], |dir| vec![dir.to_owned()]);
    let found = dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| format!("program_dir: no {name} in {dirs:?}; install it, or set program_dir"))
}

/// A child and our end of its link. Dropped only when it has been reaped, so its pid is never another process's.
#[derive(Debug)]
pub(crate) struct Child<Out, In> {
    /// In log lines: `worker 2`.
    pub name: String,
    pub pid: Pid,
    pub started: Instant,
    /// It has said `Ready`.
    pub ready: bool,
    /// Why we ended it, or its own last word.
    pub reason: Option<String>,
    pub gate: Gate,
    /// What it has written to standard error, which nobody reads before its death: records go over the link.
    stderr: Option<ChildStderr>,
    pub peer: Peer<Out, In>,
}

impl<Out: Record, In: Record> Child<Out, In> {
    /// Starts a program; events of its link carry `id`. Its environment is `tunables` of its C library alone.
    pub fn start(from: From, name: String, epoll: &Rc<OwnedFd>, id: u32, tunables: &str) -> io::Result<Self> {
        let (channel, theirs) = Channel::pair()?;
        let peer = Peer::new(channel, epoll, id)?;
        let mut command = Command::new(find(from.0, from.1, LIBEXEC).map_err(io::Error::other)?);
        command.env_clear().env("GLIBC_TUNABLES", tunables).stdin(theirs).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr = child.stderr.take();
        let (pid, started, gate) = (Pid::from_child(&child), Instant::now(), Gate::default());
        Ok(Child { name, pid, started, ready: false, reason: None, gate, stderr, peer })
    }

    /// Sends a record; a child that cannot be sent to is killed.
    pub fn send(&mut self, record: Out, fds: Vec<OwnedFd>) {
        if let Err(why) = self.peer.send(record, fds) {
            self.kill(&why);
        }
    }

    /// Sends what waits, and takes the next record, if there is one; a child that breaks the contract or closes its link is killed.
    pub fn recv(&mut self) -> Option<Received<In>> {
        self.peer.flush().and_then(|()| self.peer.recv()).unwrap_or_else(|why| {
            self.kill(&why);
            None
        })
    }

    /// Its first word: it is confined and serving.
    pub fn is_ready(&mut self, ready: &Ready, log: &mut Log) {
        self.ready = true;
        log.note_weaker(&ready.weaker.to_string());
    }

    /// The beginning of what it wrote to standard error, a panic perhaps. Does not wait, even if somebody holds the pipe open.
    pub fn last_words(&mut self) -> String {
        let mut words = [0; 512];
        let pipe = self.stderr.as_mut().filter(|pipe| ioctl_fionbio(pipe, true).is_ok());
        let length = pipe.and_then(|pipe| pipe.read(&mut words).ok()).unwrap_or(0);
        words.get(..length).unwrap_or_default().trim_ascii().escape_ascii().to_string()
    }

    /// Ends it at once; reap.rs tidies up after it.
    pub fn kill(&mut self, why: &str) {
        // One that closed its link has ended by itself most likely, and its status tells more.
        self.reason = self.reason.take().or(Some(why.to_owned()).filter(|why| why != CLOSED));
        self.peer.close();
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named_with_the_setting() {
        let error = find("caisson-authd", Some(Path::new("/nonexistent")), LIBEXEC).unwrap_err();
        assert!(error.contains("program_dir") && error.contains("caisson-authd") && error.contains("/nonexistent"));
    }
}
