//! What each of Caisson's processes may do, and the only place that enforces it.
//!
//! Each process climbs the same ladder, and there is no way back up:
//! [`take_link`] → [`confine`] (single-threaded) → make the helper threads → [`Confined::seal`] → loop.
//! The monitor has no link and starts at [`confine_monitor`].
//!
//! After the seal a child has no call that opens, makes or starts anything (a broker: nothing but openat2 and its kin). What std and
//! libraries do unasked counts: `thread::spawn`, `available_parallelism`, `File::metadata` and `read_to_end` (statx), `TcpStream::connect`,
//! a panic under `RUST_BACKTRACE` and `shutdown(2)` for anything but sending end a worker with `SIGSYS`.
//!
//! Imports no crate of ours. Reads from: its caller only. Trusts: the kernel.
//! What a role may call is data, in `policy/`; `seccomp`, `landlock`, `creds` and `mounts` bring it into force, and each
//! checks afterwards that it holds. Not here: who starts whom (monitor/src/spawn.rs), paths (monitor/broker/src/resolve.rs).

#[cfg(feature = "selftest")]
mod attempts;
mod creds;
mod error;
mod landlock;
mod link;
mod mounts;
pub mod policy;
mod require;
mod seccomp;

use std::os::fd::BorrowedFd;

#[cfg(feature = "selftest")]
pub use attempts::{Alone, Attempt, Expected, Held, attempts};
pub use error::Error;
pub use link::take_link;

/// Which of Caisson's processes this is; it decides everything a process may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `caissond`: root, few capabilities.
    Monitor,
    /// `caisson-authd`: passwords and keys, no files, no network.
    Authd,
    /// `caisson-worker` for FTP: clients, and descriptors it was handed.
    WorkerFtp,
    /// `caisson-worker` for SFTP.
    WorkerSsh,
    /// `caisson-broker`: one account's directory, no network.
    Broker,
    /// `caisson-config`: the configuration, names of users and groups; changes nothing.
    Config,
}

impl Role {
    /// Every role, in the order of design §1.
    pub const ALL: [Role; 6] =
        [Role::Monitor, Role::Authd, Role::WorkerFtp, Role::WorkerSsh, Role::Broker, Role::Config];

    /// The role's name in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Monitor => "monitor",
            Role::Authd => "authd",
            Role::WorkerFtp => "worker-ftp",
            Role::WorkerSsh => "worker-ssh",
            Role::Broker => "broker",
            Role::Config => "config",
        }
    }
}

/// What happens when the kernel cannot enforce a part of the sandbox: `sandbox` in caisson.toml(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// The process does not start.
    Required,
    /// It starts, and [`Report::weaker`] names the part.
    BestEffort,
}

/// Whom a process runs as from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Real, effective, saved and file-system uid.
    pub uid: u32,
    /// Real, effective, saved and file-system gid.
    pub gid: u32,
    /// Supplementary groups; the gid need not be among them.
    pub groups: Vec<u32>,
}

/// What a process sees as `/` from now on.
#[derive(Clone, Copy, Debug)]
pub enum Root<'a> {
    /// The machine's own root, which Landlock makes read-only: caisson-config.
    Keep,
    /// An empty read-only directory: workers and authd.
    Empty,
    /// The account's directory, by an `O_PATH` descriptor: brokers.
    ///
    /// As root it becomes `/`, and the descriptor is **replaced** by one for the same directory inside the new mount namespace
    /// (same number, still the caller's), for the old one would lead out of it by `..`. Without root it stays as it is.
    Directory(BorrowedFd<'a>),
}

/// What a broker's account may do beneath its root, as far as Landlock can narrow it.
///
/// The finer rules are monitor/broker/src/rules.rs's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Read files.
    pub read: bool,
    /// Create, write and truncate files.
    pub write: bool,
    /// List directories.
    pub list: bool,
    /// Remove files and empty directories.
    pub delete: bool,
    /// Rename files, links and directories, also into other directories.
    pub rename: bool,
    /// Make directories.
    pub mkdir: bool,
    /// Make symbolic and hard links.
    pub link: bool,
    /// Change modes and times. Landlock has no right for it; without any right to change, the mount is read-only.
    pub attributes: bool,
}

impl Rights {
    /// Nothing: every role but the broker.
    pub const NONE: Rights = Rights::each(false);
    /// Everything an account can have.
    pub const ALL: Rights = Rights::each(true);

    const fn each(on: bool) -> Rights {
        Rights { read: on, write: on, list: on, delete: on, rename: on, mkdir: on, link: on, attributes: on }
    }

    /// Whether nothing beneath the root may be changed.
    #[must_use]
    pub const fn changes_nothing(&self) -> bool {
        !(self.write || self.delete || self.rename || self.mkdir || self.link || self.attributes)
    }
}

/// The whole order to [`confine`].
#[derive(Clone, Debug)]
pub struct Confinement<'a> {
    /// Which process this is.
    pub role: Role,
    /// Whom to become. `None`: started without root, stay who we are.
    pub ids: Option<Ids>,
    /// What to see as `/`.
    pub root: Root<'a>,
    /// What Landlock leaves beneath [`Root::Directory`]; ignored for the other roots.
    pub rights: Rights,
    /// What to do when the kernel cannot.
    pub enforcement: Enforcement,
}

/// What holds less than designed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One sentence for each thing that could not be enforced; empty when all holds.
    pub weaker: Vec<String>,
}

impl Report {
    /// Takes note of a failed step under `best-effort`, or turns it into the error that stops the start.
    fn settle(&mut self, enforcement: Enforcement, step: Result<(), Error>) -> Result<(), Error> {
        match step {
            Err(Error::Unenforced { what, why }) if enforcement == Enforcement::BestEffort => {
                self.weaker.push(format!("{what} not enforced: {why}"));
                Ok(())
            }
            other => other,
        }
    }
}

/// A process that is confined, but may still make threads; [`Confined::seal`] closes it.
#[derive(Debug)]
#[must_use = "a process that is not sealed has no seccomp filter"]
pub struct Confined {
    role: Role,
    enforcement: Enforcement,
    report: Report,
}

/// Confines the calling process, all but its seccomp filter: namespaces, root directory, ids, capabilities, `no_new_privs`, Landlock.
///
/// Must run while the process has one thread: Landlock and namespaces belong to threads, and threads made afterwards inherit them.
/// Never undone. After an error the process is half confined and must exit.
///
/// # Errors
/// [`Error::Unenforced`] for what the kernel cannot do under [`Enforcement::Required`]; [`Error::Refused`] for an order that makes
/// no sense (a child of root that would stay root); [`Error::Broken`] if something claims to be in force and is not.
pub fn confine(c: &Confinement<'_>) -> Result<Confined, Error> {
    let mut report = Report::default();
    let privileged = creds::is_root();
    if privileged && c.ids.is_none() {
        return Err(Error::Refused("a child of root must be told whom to become"));
    }
    creds::begin()?;
    if privileged {
        report.settle(c.enforcement, mounts::enter(c.root, &c.rights))?;
    } else {
        report.weaker.push(without_root(c.role));
    }
    creds::drop_to(c.role, c.ids.as_ref())?;
    let restricted = landlock::restrict(c.role, c.root, &c.rights, &mut report);
    report.settle(c.enforcement, restricted)?;
    Ok(Confined { role: c.role, enforcement: c.enforcement, report })
}

/// Confines the monitor: it stays root with few capabilities, and sees that its children can be confined.
///
/// # Errors
/// As [`confine`].
pub fn confine_monitor(enforcement: Enforcement) -> Result<Confined, Error> {
    let mut report = Report::default();
    creds::begin()?;
    creds::drop_to(Role::Monitor, None)?;
    report.settle(enforcement, require::landlock())?;
    Ok(Confined { role: Role::Monitor, enforcement, report })
}

fn without_root(role: Role) -> String {
    let reach = match role {
        // Neither Landlock nor a filter can tell these by their path.
        Role::Broker => {
            "; taken over, it could look up and chmod this user's files outside the directory, though not open them"
        }
        _ => "",
    };
    let name = role.as_str();
    format!(
        "started without root: {name} keeps the uid and the mount, network and IPC namespaces of whoever started it{reach}"
    )
}

impl Confined {
    /// Puts every thread of the process under the role's seccomp filter: a call that is not on the list kills the process.
    ///
    /// The last step before the loop; [`policy::calls`] lists what is left.
    ///
    /// # Errors
    /// [`Error::Unenforced`] if the kernel has no seccomp filters (under [`Enforcement::Required`]) or a thread cannot be synchronised.
    pub fn seal(mut self) -> Result<Report, Error> {
        let sealed = seccomp::install(self.role);
        self.report.settle(self.enforcement, sealed)?;
        Ok(self.report)
    }
}
