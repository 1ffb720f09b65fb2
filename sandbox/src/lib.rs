//! What caissond may do, the only place that enforces it, and what its children's sandbox is made of as well.
//!
//! The monitor climbs two steps, and there is no way back up: [`confine_monitor`] → [`Confined::seal`] → loop.
//!
//! Imports no crate of ours. Reads from: its caller only. Trusts: the kernel.
//! What the monitor may call is data, in `policy/`; `seccomp` and `creds` bring it into force, and each checks afterwards that it
//! holds. All of it runs as root, and is counted by monitor/tests/tcb.rs.
//! Not here: how children confine themselves, and what each of them may do (sandbox/child); who starts whom (monitor/src/spawn.rs).

pub mod creds;
mod error;
pub mod policy;
pub mod require;
mod seccomp;

pub use error::Error;

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
    ///
    /// # Errors
    /// The step's own, unless it is [`Error::Unenforced`] and that is enough.
    pub fn settle(&mut self, enforcement: Enforcement, step: Result<(), Error>) -> Result<(), Error> {
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
    /// The calls it keeps.
    pub policy: policy::Policy,
    /// What to do when the kernel has no seccomp filters.
    pub enforcement: Enforcement,
    /// What could not be enforced so far.
    pub report: Report,
}

/// Confines the monitor: it stays root with few capabilities, and sees that its children can be confined.
///
/// # Errors
/// [`Error::Unenforced`] for what the kernel cannot do under [`Enforcement::Required`]; [`Error::Broken`] if something claims to
/// be in force and is not.
pub fn confine_monitor(enforcement: Enforcement) -> Result<Confined, Error> {
    let mut report = Report::default();
    creds::begin()?;
    creds::narrow(creds::MONITOR_KEEPS)?;
    creds::drop_capabilities(creds::MONITOR_KEEPS)?;
    report.settle(enforcement, require::landlock())?;
    Ok(Confined { policy: policy::monitor(), enforcement, report })
}

impl Confined {
    /// Puts every thread of the process under its policy's seccomp filter: a call that is not on the list kills the process.
    ///
    /// The last step before the loop.
    ///
    /// # Errors
    /// [`Error::Unenforced`] if the kernel has no seccomp filters (under [`Enforcement::Required`]) or a thread cannot be synchronised.
    pub fn seal(mut self) -> Result<Report, Error> {
        let sealed = seccomp::install(&self.policy);
        self.report.settle(self.enforcement, sealed)?;
        Ok(self.report)
    }
}
