//! The servers that are measured: a file each, one table, and how one is started and ended.
//!
//! Each runs in the foreground on ports of its own on 127.0.0.1, for the bench's user and its folder, with limits that
//! nothing here reaches, no name look-ups and no transfer log. What a server does for safety by default stays on.

mod caisson;
mod floor;
mod proftpd;
mod pure_ftpd;
mod pyftpdlib;
mod unftp;
mod vsftpd;

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::Session;
use crate::error::{Call, Error, Result};
use crate::proc;
use crate::site::Place;

/// In the order in which they take turns; each run begins one further on.
pub const SERVERS: &[Kind] =
    &[caisson::KIND, floor::KIND, vsftpd::KIND, pure_ftpd::KIND, proftpd::KIND, pyftpdlib::KIND, unftp::KIND];

/// Passive ports of each server.
const PASSIVE: u16 = 2040;

/// What a server is to the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Caisson.
    Ours,
    /// Real servers of others.
    Peer,
    /// The bound that nobody can pass by much.
    Floor,
}

/// How one server is started.
#[derive(Debug)]
pub struct Kind {
    /// Its name on the command line and in the results.
    pub name: &'static str,
    /// What it is to the comparison.
    pub role: Role,
    /// Why it cannot be started here, if so.
    pub missing: fn(&Place) -> Option<String>,
    /// Its version, in one line.
    pub version: fn(&Place) -> String,
    /// Writes its configuration and gives the command that runs it in the foreground.
    pub command: fn(&Place, &Ports) -> Result<Command>,
    /// It runs without TLS, and with it.
    pub speaks: (bool, bool),
    /// The one row in which it takes part; all others, if there is none.
    pub only: Option<&'static str>,
    /// Idle sessions it is asked to hold.
    pub idle_most: usize,
    /// Why not more, where that is less than others get.
    pub idle_reason: &'static str,
}

/// The ports of one server.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// The control port.
    pub control: u16,
    /// First passive port.
    pub first: u16,
    /// Last passive port.
    pub last: u16,
    /// With the certificate of the run: clients may use TLS, and whoever does resumes on data connections if it can.
    pub secured: bool,
}

/// Refuses names that are in no table.
///
/// # Errors
/// An unknown name; the error lists those that are known.
pub fn check_names(names: &[String]) -> Result<()> {
    let known: Vec<_> = SERVERS.iter().map(|k| k.name).collect();
    match names.iter().find(|n| !known.contains(&n.as_str())) {
        Some(name) => Err(Error::Other(format!("--servers {name}: expected some of {}", known.join(",")))),
        None => Ok(()),
    }
}

/// A server that runs. Ended and reaped when dropped.
#[derive(Debug)]
pub struct Running {
    /// Which server.
    pub kind: &'static Kind,
    /// Its control port.
    pub port: u16,
    child: Child,
}

impl Running {
    /// Starts a server and waits until it greets a client. Nobody logs in: a server without a session can be weighed.
    ///
    /// # Errors
    /// Its port is taken, it ended at once, or it did not greet within twenty seconds; with what it printed last.
    pub fn start(kind: &'static Kind, place: &Place, secured: bool) -> Result<Self> {
        let number = SERVERS.iter().position(|k| k.name == kind.name).unwrap_or(0);
        let number = u16::try_from(number).unwrap_or(0);
        // Below the kernel's ephemeral range, so that no client's port gets in the way. Pure-FTPd allows one session for
        // every two passive ports.
        let first = 20200 + PASSIVE * number;
        let ports = Ports { control: 20100 + number, first, last: first + PASSIVE - 1, secured };
        TcpListener::bind((Ipv4Addr::LOCALHOST, ports.control))
            .call(|| format!("{}: the port {} is not free", kind.name, ports.control))?;
        // All three: vsftpd writes its complaints to descriptor 0.
        let log = || {
            let path = log_path(kind, place);
            let file = File::options().create(true).append(true).read(true).open(&path);
            file.call(|| format!("open {}", path.display()))
        };
        let child = (kind.command)(place, &ports)?
            .stdin(log()?)
            .stdout(log()?)
            .stderr(log()?)
            .spawn()
            .call(|| format!("start {}", kind.name))?;
        let mut running = Self { kind, port: ports.control, child };
        running.wait_ready(place)?;
        Ok(running)
    }

    /// The process the tree begins with.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_ready(&mut self, place: &Place) -> Result<()> {
        let began = Instant::now();
        loop {
            let fault = match self.greet() {
                Ok(()) => return Ok(()),
                Err(fault) => fault,
            };
            let ended = self.child.try_wait().call(|| "wait".into())?;
            if ended.is_some() || began.elapsed() > Duration::from_secs(20) {
                let name = self.kind.name;
                let state = ended.map_or_else(|| "does not serve".to_owned(), |s| format!("ended ({s})"));
                return Err(Error::Other(format!(
                    "{name} {state}: {fault}; it printed: {}",
                    last_words(self.kind, place)
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn greet(&self) -> Result<()> {
        Session::connect(self.port, Instant::now() + Duration::from_secs(5))?.quit()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let root = self.child.id();
        // Taken now: once the root is gone, its children are nobody's but the keeper's.
        let mut family = proc::family(root);
        let _ = kill(Pid::from_raw(root.cast_signed()), Signal::SIGTERM);
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(5));
        }
        family.extend(proc::family(root));
        for member in family {
            member.end();
        }
        let _ = self.child.wait();
    }
}

/// A command that is killed when the measurer dies, whatever ends it (prctl(2), PR_SET_PDEATHSIG).
fn program(path: PathBuf) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(path);
    command
}

fn log_path(kind: &Kind, place: &Place) -> PathBuf {
    place.log.join(kind.name)
}

fn last_words(kind: &Kind, place: &Place) -> String {
    let text = fs::read(log_path(kind, place)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}

/// The version bench/run noted when it unpacked a Debian package.
fn debian_version(place: &Place, package: &str) -> String {
    let noted = fs::read_to_string(place.peers.join(package).join("version"));
    noted.map_or_else(|_| "unknown".into(), |v| format!("{} (Debian)", v.trim()))
}

fn missing_file(path: PathBuf, remedy: &str) -> Option<String> {
    (!path.exists()).then(|| remedy.to_owned())
}
