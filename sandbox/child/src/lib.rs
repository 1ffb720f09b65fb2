//! How the monitor's children confine themselves, and what each of them may do.
//!
//! A crate of its own so that root's program cannot link it: of what is here root does nothing. Each child climbs the same
//! ladder, and there is no way back up:
//! [`take_link`] → [`confine`] (single-threaded) → make the helper threads → [`Confined::seal`] → loop.
//!
//! After the seal a child has no call that opens, makes or starts anything (a broker: nothing but openat2 and its kin). What std and
//! libraries do unasked counts: `thread::spawn`, `available_parallelism`, `File::metadata` and `read_to_end` (statx), `TcpStream::connect`,
//! a panic under `RUST_BACKTRACE` and `shutdown(2)` for anything but sending end a worker with `SIGSYS`.
//!
//! Reads from: its caller only. Trusts: the kernel. What a role may call is data, in `policy/`; `landlock`, `ids` and `mounts`
//! bring the rest into force, and each checks afterwards that it holds.
//! Not here: unsafe code (sandbox/src/creds.rs); what root does as well, capabilities and the seccomp filter ([`sandbox`]); paths (monitor/broker/src/resolve.rs).
#![forbid(unsafe_code)]

mod child;
mod ids;
mod landlock;
mod link;
mod mounts;
pub mod policy;
mod unsent;

pub use child::{Confinement, Ids, Rights, Root, confine};
pub use link::take_link;
pub use sandbox::Error;
pub use sandbox::creds::{give_back_pages, rest_until_readable};
pub use unsent::unsent;

/// Which of the monitor's children this is; it decides everything a process may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
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
    pub const ALL: [Role; 5] = [Role::Authd, Role::WorkerFtp, Role::WorkerSsh, Role::Broker, Role::Config];

    /// The role's name in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
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

impl Confined {
    /// Puts every thread of the process under the role's seccomp filter: a call that is not on the list kills the process.
    ///
    /// The last step before the loop; [`policy::calls`] lists what is left.
    ///
    /// # Errors
    /// [`Error::Unenforced`] if the kernel has no seccomp filters (under [`Enforcement::Required`]) or a thread cannot be synchronised.
    pub fn seal(mut self) -> Result<Report, Error> {
        let sealed = sandbox::seal(&policy::calls(self.role));
        self.report.settle(self.enforcement, sealed)?;
        Ok(self.report)
    }
}
