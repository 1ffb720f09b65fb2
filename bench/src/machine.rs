//! The machine a run was made on, for the record.

use std::fs;
use std::process::Command;

/// What a reader needs to judge figures by.
#[derive(Debug, Clone)]
pub struct Machine {
    /// `x86_64` or `aarch64`: also the name of the result files.
    pub arch: &'static str,
    /// The CPU model.
    pub cpu: String,
    /// CPUs this process may run on.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The operating system's own name.
    pub system: String,
    /// Runnable tasks, 1-minute mean, when the run began: above the run's own, others were at work.
    pub load: String,
    /// When the run began, UTC, RFC 3339.
    pub date: String,
}

impl Machine {
    /// Asks /proc, /etc/os-release, lscpu and date; what cannot be found is "unknown".
    pub fn look() -> Self {
        Self {
            arch: std::env::consts::ARCH,
            cpu: cpu_model().unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mib: memory_mib().unwrap_or(0),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| unknown(), |s| s.trim().into()),
            system: system_name().unwrap_or_else(unknown),
            load: fs::read_to_string("/proc/loadavg")
                .ok()
                .and_then(|s| s.split(' ').next().map(String::from))
                .unwrap_or_else(unknown),
            date: printed("date", &["-u", "+%FT%TZ"]).unwrap_or_else(unknown),
        }
    }
}

fn unknown() -> String {
    "unknown".into()
}

fn cpu_model() -> Option<String> {
    // /proc/cpuinfo has no model name on aarch64; lscpu knows the tables.
    let text = printed("lscpu", &[]).or_else(|| fs::read_to_string("/proc/cpuinfo").ok())?;
    let value = |key: &str| text.lines().find_map(|l| l.to_lowercase().starts_with(key).then(|| l.split_once(':'))?);
    value("model name").map(|(_, v)| v.trim().to_owned())
}

fn memory_mib() -> Option<u64> {
    memory_kib("MemTotal:").map(|kib| kib / 1024)
}

/// Bytes of memory that can be had without swapping (MemAvailable of proc(5)); 0 where the kernel does not say.
pub fn memory_available() -> u64 {
    memory_kib("MemAvailable:").unwrap_or(0) * 1024
}

fn memory_kib(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(field))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn system_name() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

fn printed(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).env("LC_ALL", "C").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
