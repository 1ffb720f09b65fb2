//! The scales: CPU time and memory of a tree of processes, read from /proc.
//!
//! CPU of a living process comes from its CPU clock (nanoseconds, all its threads, ended ones too); CPU of reaped
//! children from cutime and cstime of /proc/PID/stat (proc(5), clock ticks of 10 ms, kept exactly and rounded when
//! read). Memory is Pss of /proc/PID/smaps_rollup: shared pages count by their share.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::error::{Error, Result};

/// The CPU time of the whole tree under `root`, living and reaped.
pub fn cpu(root: u32) -> Duration {
    let tick = Duration::from_secs(1) / u32::try_from(ticks_per_second()).unwrap_or(100);
    tree(root).iter().map(|&pid| own_cpu(pid) + tick * reaped_ticks(pid)).sum()
}

/// The proportional set size of the whole tree under `root`, in bytes.
///
/// # Errors
/// Nobody of the tree is there, or the kernel has no smaps_rollup.
pub fn pss(root: u32) -> Result<u64> {
    let mut sum = 0;
    for pid in tree(root) {
        // A process that ended since the tree was walked has no memory; the root must be there.
        match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
            Ok(text) => sum += pss_line(&text).unwrap_or(0),
            Err(cause) if pid == root => return Err(Error::Call(format!("read smaps_rollup of {pid}"), cause)),
            Err(_) => {}
        }
    }
    Ok(sum)
}

/// How many processes the tree under `root` has.
pub fn count(root: u32) -> usize {
    tree(root).len()
}

/// Waits until the tree under `root` does nothing any more (at most `limit`): what one turn left to be done must not
/// fall into the next one's time.
pub fn settle(root: u32, limit: Duration) {
    let began = Instant::now();
    let mut before = cpu(root);
    while began.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(20));
        let now = cpu(root);
        if now.abs_diff(before) < Duration::from_micros(500) {
            return;
        }
        before = now;
    }
}

/// All descendants of `root`, without itself.
pub fn below(root: u32) -> Vec<u32> {
    tree(root).split_off(1)
}

/// One process by number and start, so that another one with the same number later is not taken for it.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pid: u32,
    started: Option<u64>,
}

impl Member {
    /// Ends it at once, if it is still the same process.
    pub fn end(self) {
        if self.started.is_some() && stat_field(self.pid, STARTED) == self.started {
            let _ = kill(Pid::from_raw(self.pid.cast_signed()), Signal::SIGKILL);
        }
    }
}

/// The tree under `root` as it is now.
pub fn family(root: u32) -> Vec<Member> {
    tree(root).into_iter().map(|pid| Member { pid, started: stat_field(pid, STARTED) }).collect()
}

/// Ends every process that has `uid` as any of its uids.
///
/// For users that exist for the run only, so whatever runs as one of them is a left-over.
pub fn end_all_of(uid: u32) {
    for pid in all() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let uids = status.lines().find_map(|l| l.strip_prefix("Uid:")).unwrap_or_default();
        if uids.split_ascii_whitespace().any(|u| u.parse() == Ok(uid)) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
    }
}

/// The processes below `root` that run a program of this name (at most 15 bytes of it count, proc(5)).
pub fn named(root: u32, name: &str) -> Vec<Member> {
    let comm = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut members = family(root);
    members.retain(|member| comm(member.pid).trim_end() == name.get(..15).unwrap_or(name));
    members
}

/// `root` and all its descendants, parents first.
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in all() {
        if let Some(parent) = stat_field(pid, PPID) {
            children.entry(u32::try_from(parent).unwrap_or(0)).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok())
}

fn own_cpu(pid: u32) -> Duration {
    clock_getcpuclockid(Pid::from_raw(pid.cast_signed())).and_then(clock_gettime).map_or(Duration::ZERO, Duration::from)
}

fn reaped_ticks(pid: u32) -> u32 {
    let ticks = stat_field(pid, CUTIME).unwrap_or(0) + stat_field(pid, CSTIME).unwrap_or(0);
    u32::try_from(ticks).unwrap_or(0)
}

// Fields of /proc/PID/stat counted from the state, which is the first after the name (proc(5) numbers it 3).
const PPID: usize = 1;
const CUTIME: usize = 13;
const CSTIME: usize = 14;
const STARTED: usize = 19;

fn stat_field(pid: u32, field: usize) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, parentheses included: the last one ends it.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(field)?.parse().ok()
}

fn pss_line(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|l| l.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn ticks_per_second() -> i64 {
    sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pss_line_is_read_in_bytes() {
        assert_eq!(pss_line("00400000-7ffd rollup\nRss:  900 kB\nPss:                 123 kB\n"), Some(123 * 1024));
    }

    #[test]
    fn a_tree_begins_with_its_root() {
        let me = std::process::id();
        assert_eq!(tree(me).first(), Some(&me));
        assert!(cpu(me) > Duration::ZERO);
        assert!(pss(me).is_ok_and(|bytes| bytes > 0));
    }
}
