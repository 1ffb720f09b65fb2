//! A process that confines itself and then does as it is told: the tests' stand-in for worker, authd, broker and monitor.
//!
//! `confined HOW ROLE UID RIGHTS ACT`, with a link as descriptor 0. Takes the link, receives an account's directory, a read-only
//! file and a listener over it, confines itself unless HOW is `alone`, reports, then performs ACT: an attempt's name, `works`, `report`, `wait` or `descriptors`.
//! Under HOW `under-monitor` it first becomes a sealed monitor and starts itself again, as caissond does. `no-landlock` and
//! `no-mounts` play a kernel that lacks them, `…-best-effort` makes do.

mod attempts;
mod works;

use std::io::{IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};

use attempts::{Held, attempts};
use child_sandbox::{Confinement, Enforcement, Ids, Report, Rights, Role, Root};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

/// What the command line said.
struct Order {
    how: String,
    /// `None`: the monitor.
    role: Option<Role>,
    ids: Option<Ids>,
    rights: Rights,
    act: String,
    arguments: Vec<String>,
}

fn order() -> Order {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, how, role, uid, rights, act] = arguments.as_slice() else {
        panic!("usage: confined HOW ROLE UID RIGHTS ACT");
    };
    Order {
        how: how.clone(),
        role: Role::ALL.into_iter().find(|r| r.as_str() == role),
        ids: uid.parse().ok().map(|uid| Ids { uid, gid: uid, groups: vec![] }),
        rights: match rights.as_str() {
            "all" => Rights::ALL,
            "read" => Rights { read: true, list: true, ..Rights::NONE },
            _ => Rights::NONE,
        },
        act: act.clone(),
        arguments: arguments.clone(),
    }
}

fn main() -> ExitCode {
    let order = order();
    let link = match child_sandbox::take_link() {
        Ok(link) => link,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    if order.how == "under-monitor" {
        return as_monitor(&order, link);
    }
    if order.how.starts_with("no-landlock") {
        deny(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS);
    } else if order.how.starts_with("no-mounts") {
        deny(&[libc::SYS_unshare, libc::SYS_open_tree], libc::EPERM);
    }
    let mut held = receive(&link, 3).expect("three descriptors");
    let [directory, file, listener] = held.as_mut_slice() else {
        panic!("three descriptors");
    };
    let (ask, answer) = works::helper_thread_channels();
    if order.how == "alone" {
        tell(&link, "ready");
    } else {
        confine(&order, &link, directory, || works::helper_thread(&ask));
    }
    let outcome = match order.act.as_str() {
        "report" => Ok(()),
        "wait" => receive(&link, 1).map(drop),
        "descriptors" => return descriptors(&link),
        "works" => works::works(order.role, &order.rights, &link, directory, listener, &answer),
        name => attempts(order.role).find(|a| a.name == name).expect("an attempt of this role").perform(&Held::new(
            file.as_fd(),
            directory.as_fd(),
            listener.as_fd(),
        )),
    };
    match outcome {
        Ok(()) => tell(&link, "done"),
        Err(e) => tell(&link, &format!("failed: {e}")),
    }
    ExitCode::SUCCESS
}

/// Says which descriptors are open, and what is behind descriptor 0.
fn descriptors(link: &OwnedFd) -> ExitCode {
    let mut open: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .expect("/proc")
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    open.sort();
    let zero = std::fs::read_link("/proc/self/fd/0").expect("descriptor 0");
    tell(link, &format!("{} {}", zero.display(), open.join(" ")));
    ExitCode::SUCCESS
}

/// Becomes a sealed monitor, starts the order in a child, and ends as it ended.
fn as_monitor(order: &Order, link: OwnedFd) -> ExitCode {
    sandbox::confine_monitor().expect("a confined monitor");
    let status = Command::new(&order.arguments[0])
        .arg("confined")
        .args(&order.arguments[2..])
        .stdin(Stdio::from(link))
        .status()
        .expect("a child of a sealed monitor");
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        (_, signal) => ExitCode::from(128 + u8::try_from(signal.unwrap_or(0)).unwrap_or(0)),
    }
}

fn confine(order: &Order, link: &OwnedFd, directory: &mut OwnedFd, thread: impl FnOnce()) {
    let enforcement = if order.how.ends_with("best-effort") { Enforcement::BestEffort } else { Enforcement::Required };
    let sealed = match order.role {
        None => sandbox::confine_monitor().map(|()| {
            thread();
            Report::default()
        }),
        Some(role) => {
            let root = match role {
                Role::Config => Root::Keep,
                Role::Broker => Root::Directory(directory),
                _ => Root::Empty,
            };
            let c = Confinement { role, ids: order.ids.clone(), root, rights: order.rights, enforcement };
            child_sandbox::confine(c).and_then(|confined| {
                thread();
                if role == Role::Config {
                    works::load_name_service();
                }
                confined.seal()
            })
        }
    };
    match sealed {
        Ok(report) => tell(link, &format!("ready\n{}", report.weaker.join("\n"))),
        Err(e) => {
            tell(link, &format!("error: {e}"));
            std::process::exit(1);
        }
    }
}

/// Lets some calls fail from now on, as they would on another kernel or in a container.
fn deny(calls: &[i64], errno: i32) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let filter: BpfProgram = SeccompFilter::new(
        calls.iter().map(|call| (*call, vec![])).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        std::env::consts::ARCH.try_into().expect("an architecture seccompiler knows"),
    )
    .and_then(TryInto::try_into)
    .expect("a filter");
    seccompiler::apply_filter(&filter).expect("a filter in force");
}

/// Receives one record with exactly `count` descriptors.
fn receive(link: &OwnedFd, count: usize) -> Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(link, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|m| match m {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(descriptors.len(), count);
    Ok(descriptors)
}

fn tell(link: &OwnedFd, what: &str) {
    rustix::io::write(link, what.as_bytes()).expect("the test listens");
}
