//! Processes as /proc shows them (proc(5)): who belongs to a daemon, how each is confined, what it weighs.

use std::{
    collections::HashMap,
    fs,
    io::IoSliceMut,
    net::{IpAddr, SocketAddr},
};

use memchr::memmem;
use nix::{
    sys::{
        signal::{Signal, kill},
        uio::{RemoteIoVec, process_vm_readv},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};

use crate::until;

/// One process by number and start time, so that another one with the same number later is not taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    started: u64,
}

impl Process {
    /// The process that has this number now.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Some(Process { pid, started: Stat::of(pid)?.started })
    }

    /// Whether it is still there. One that has ended and waits for its parent is not.
    #[must_use]
    pub fn is_alive(self) -> bool {
        // An orphan that came to us ends when we take its status.
        let pid = Pid::from_raw(self.pid.cast_signed());
        if Stat::of(self.pid).is_some_and(|s| s.parent == std::process::id() && s.state == 'Z' && s.is_ours()) {
            let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        }
        Stat::of(self.pid).is_some_and(|s| s.started == self.started && s.state != 'Z')
    }

    /// Sends it a signal, if it is still the same process.
    pub fn signal(self, signal: Signal) {
        if self.is_alive() {
            let _ = kill(Pid::from_raw(self.pid.cast_signed()), signal);
        }
    }

    /// Stops it (SIGSTOP), and waits until each of its threads stands still: kill(2) does not.
    pub fn halt(self) {
        self.signal(Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.pid);
        until("the process stands still", || {
            let stands = |task: fs::DirEntry| {
                let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                stat.rsplit_once(") ").is_some_and(|(_, behind)| behind.starts_with('T'))
            };
            fs::read_dir(&tasks).ok()?.flatten().all(stands).then_some(())
        });
    }

    /// The fields of /proc/PID/status.
    #[must_use]
    pub fn status(self) -> HashMap<String, String> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        text.lines().filter_map(|l| l.split_once(':')).map(|(k, v)| (k.to_owned(), v.trim().to_owned())).collect()
    }

    /// Where a link below /proc/PID leads: `ns/mnt`, `fd/3`, `exe`.
    #[must_use]
    pub fn link(self, name: &str) -> Option<String> {
        let target = fs::read_link(format!("/proc/{}/{name}", self.pid)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// The names in its root directory.
    #[must_use]
    pub fn root_entries(self) -> Option<Vec<String>> {
        let entries = fs::read_dir(format!("/proc/{}/root/", self.pid)).ok()?;
        Some(entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
    }

    /// Where its descriptors lead.
    #[must_use]
    pub fn descriptors(self) -> Vec<String> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid)).into_iter().flatten().flatten();
        entries.filter_map(|e| fs::read_link(e.path()).ok()).map(|t| t.to_string_lossy().into_owned()).collect()
    }

    /// Where each of these byte strings is in its memory, first places only: all that is mapped and may be read, by
    /// process_vm_readv(2), as root. The stack must be readable.
    #[must_use]
    pub fn places_of(self, needles: &[Vec<u8>]) -> Vec<Option<usize>> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        let mut found = vec![None; needles.len()];
        let mut read = 0;
        for line in maps.lines().filter(|line| line.contains(" r")) {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let bounds = range.and_then(|(from, to)| {
                Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
            });
            let (from, to) = bounds.unwrap_or_else(|| panic!("not a mapping: {line}"));
            let bytes = self.bytes(from, to - from);
            read += usize::from(line.ends_with("[stack]") && bytes.iter().any(|&byte| byte != 0));
            for (needle, place) in needles.iter().zip(&mut found) {
                *place = place.or_else(|| Some(from + memmem::find(&bytes, needle)?));
            }
        }
        assert!(read == 1 || !self.is_alive(), "the memory of {} cannot be read", self.pid);
        found
    }

    /// So many bytes of its memory; zeros for pages that cannot be read, as is the case for the kernel's.
    fn bytes(self, base: usize, len: usize) -> Vec<u8> {
        const PAGE: usize = 4096;
        let (mut bytes, mut done) = (vec![0; len], 0);
        while done < len {
            let local = IoSliceMut::new(&mut bytes[done..]);
            let remote = RemoteIoVec { base: base + done, len: len - done };
            done += process_vm_readv(Pid::from_raw(self.pid.cast_signed()), &mut [local], &[remote]).unwrap_or(PAGE);
        }
        bytes
    }

    /// A line of /proc/PID/smaps_rollup in bytes: `Pss`, `Private_Dirty`.
    #[must_use]
    pub fn memory(self, line: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid)).unwrap_or_default();
        let value = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':'));
        let kib = value.and_then(|v| v.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kib.unwrap_or_else(|| panic!("no {line} in smaps_rollup of {}", self.pid)) * 1024
    }
}

/// The living children of `parent` with their names (comm), oldest first.
#[must_use]
pub fn children(parent: u32) -> Vec<(Process, String)> {
    let mut found: Vec<(Process, String)> = everybody()
        .filter(|(_, stat)| stat.parent == parent && stat.state != 'Z')
        .map(|(pid, stat)| (Process { pid, started: stat.started }, stat.name))
        .collect();
    found.sort_by_key(|(process, _)| (process.started, process.pid));
    found
}

/// Children of a daemon that became ours when it ended (we are their subreaper), living or not yet reaped.
#[must_use]
pub fn orphans() -> Vec<Process> {
    everybody()
        .filter(|(_, stat)| stat.parent == std::process::id() && stat.is_ours())
        .map(|(pid, stat)| Process { pid, started: stat.started })
        .filter(|process| process.is_alive())
        .collect()
}

/// The inode of the TCP socket between `local` and `peer`, seen from `local`'s side.
#[must_use]
pub fn socket_between(local: SocketAddr, peer: SocketAddr) -> Option<u64> {
    let table = if local.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let text = fs::read_to_string(table).ok()?;
    // State 01 is established. The table can have tens of thousands of lines, so only the right one is taken apart.
    let wanted = format!(" {} {} 01 ", in_hex(local), in_hex(peer));
    let line = &text[text.find(&wanted)? + wanted.len()..];
    // Behind the state: queues, timer, retransmits, uid, timeouts, inode.
    line.split_whitespace().nth(5)?.parse().ok()
}

/// An address as /proc/net/tcp spells it: words of four bytes in the machine's order.
fn in_hex(address: SocketAddr) -> String {
    let bytes: Vec<u8> = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words: String =
        bytes.chunks(4).map(|w| format!("{:08X}", u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))).collect();
    format!("{words}:{:04X}", address.port())
}

struct Stat {
    name: String,
    state: char,
    parent: u32,
    started: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything, parentheses too.
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let words: Vec<&str> = after.split_whitespace().collect();
        Some(Stat {
            name: name.to_owned(),
            state: words.first()?.chars().next()?,
            parent: words.get(1)?.parse().ok()?,
            started: words.get(19)?.parse().ok()?,
        })
    }

    fn is_ours(&self) -> bool {
        self.name.starts_with("caisson-")
    }
}

fn everybody() -> impl Iterator<Item = (u32, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()).filter_map(|pid| Some((pid, Stat::of(pid)?)))
}
