//! How a child of the monitor is confined, step by step: the order it gets, and [`confine`], which carries it out.
//!
//! Reads from: its caller only. Not here: the monitor's own confinement, the seccomp filter (sandbox/src).

use std::os::fd::OwnedFd;

use sandbox::creds;

use crate::{Confined, Enforcement, Error, Report, Role, ids, landlock, mounts};

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
#[derive(Debug)]
pub enum Root<'a> {
    /// The machine's own root, which Landlock makes read-only: caisson-config.
    Keep,
    /// An empty read-only directory: workers and authd.
    Empty,
    /// The account's directory, by an `O_PATH` descriptor: brokers.
    ///
    /// As root it becomes `/`, and the descriptor is **replaced** by one for the same directory inside the new mount namespace
    /// (of the same number), for the old one would lead out of it by `..`. Without root it stays as it is.
    Directory(&'a mut OwnedFd),
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
#[derive(Debug)]
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

/// The capabilities a child keeps.
const NOTHING: creds::Keeps = &[];

/// Confines the calling process, all but its seccomp filter: namespaces, root directory, ids, capabilities, `no_new_privs`, Landlock.
///
/// Must run while the process has one thread: Landlock and namespaces belong to threads, and threads made afterwards inherit them.
/// Never undone. After an error the process is half confined and must exit.
///
/// # Errors
/// [`Error::Unenforced`] for what the kernel cannot do under [`Enforcement::Required`]; [`Error::Refused`] for an order that makes
/// no sense (a child of root that would stay root); [`Error::Broken`] if something claims to be in force and is not.
pub fn confine(mut c: Confinement<'_>) -> Result<Confined, Error> {
    let mut report = Report::default();
    let privileged = rustix::process::geteuid().is_root();
    if privileged && c.ids.is_none() {
        return Err(Error::Refused("a child of root must be told whom to become"));
    }
    see_one_thread()?;
    creds::use_one_arena();
    if privileged {
        report.settle(c.enforcement, mounts::enter(&mut c.root, &c.rights))?;
    } else {
        report.weaker.push(without_root(c.role));
    }
    creds::narrow(NOTHING)?;
    c.ids.iter().try_for_each(ids::take_on)?;
    creds::drop_capabilities(NOTHING)?;
    c.ids.iter().try_for_each(ids::verify)?;
    let restricted = landlock::restrict(c.role, &c.root, &c.rights, &mut report);
    report.settle(c.enforcement, restricted)?;
    Ok(Confined { role: c.role, enforcement: c.enforcement, report })
}

/// Namespaces, capabilities and Landlock belong to threads: one that is there already would keep what it has.
fn see_one_thread() -> Result<(), Error> {
    let tasks = std::fs::read_dir("/proc/self/task").map_err(Error::fault("open /proc/self/task"))?;
    if tasks.count() == 1 { Ok(()) } else { Err(Error::Refused("confine must come before the first thread")) }
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
