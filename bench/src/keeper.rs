//! The keeper: makes the place of the run, starts the measurer, and cleans up whatever way it ends.
//!
//! It is the subreaper of everything that is started, so a server whose parent died is still its child. Signals are
//! blocked from the first line and taken one at a time; the measurer opens its own mask again.
//! Not here: anything that is measured.

use std::ffi::OsString;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::error::{Call, Result};
use crate::proc;
use crate::site::Site;

/// The first word on the command line of the measurer.
pub const MEASURE: &str = "measure";

/// Runs the measurer with the same words, and leaves the machine as it was found. True when nothing failed.
///
/// # Errors
/// The place could not be made, or the measurer could not be started or watched.
pub fn main(words: &[OsString]) -> Result<bool> {
    watched_signals().thread_block().call(|| "block signals".into())?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).call(|| "become subreaper".into())?;
    let site = Site::make()?;
    let result = watch(words);
    sweep();
    drop(site);
    result
}

fn watched_signals() -> SigSet {
    SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD])
}

fn watch(words: &[OsString]) -> Result<bool> {
    let child = Command::new("/proc/self/exe").arg(MEASURE).args(words).spawn().call(|| "start the measurer".into())?;
    let child = Pid::from_raw(child.id().cast_signed());
    loop {
        match watched_signals().wait().call(|| "wait for a signal".into())? {
            Signal::SIGCHLD => {
                if let (Some(status), _) = reap(child) {
                    return Ok(matches!(status, WaitStatus::Exited(_, 0)));
                }
            }
            // The measurer has no clean-up of its own worth waiting for: sweep() does it all.
            _ => drop(kill(child, Signal::SIGTERM)),
        }
    }
}

/// Reaps whoever has ended: the status of `wanted` if it was among them, and whether a child is left.
fn reap(wanted: Pid) -> (Option<WaitStatus>, bool) {
    let mut found = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(status) if status.pid() == Some(wanted) => found = Some(status),
            Ok(WaitStatus::StillAlive) => return (found, true),
            Ok(_) => {}
            Err(_) => return (found, false),
        }
    }
}

/// Ends every process that descends from this one: politely, then by force after three seconds.
fn sweep() {
    let began = Instant::now();
    loop {
        let signal = if began.elapsed() < Duration::from_secs(3) { Signal::SIGTERM } else { Signal::SIGKILL };
        for process in proc::below(std::process::id()) {
            let _ = kill(Pid::from_raw(process.cast_signed()), signal);
        }
        std::thread::sleep(Duration::from_millis(50));
        let (_, left) = reap(Pid::from_raw(0));
        // After ten seconds somebody sits in an uninterruptible call; nothing more can be done.
        if !left || began.elapsed() > Duration::from_secs(10) {
            return;
        }
    }
}
