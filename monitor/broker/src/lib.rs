//! caisson-broker: the monitor's arm inside one account.
//!
//! Runs as the account's uid, in namespaces of its own with the account's directory as `/`, without network, under
//! Landlock and seccomp. Started by the monitor (descriptor 0 is the link), one per account that has a live session.
//! Reads from: monitor (trusted), workers (hostile). Hands out: descriptors of regular files, sealed listings.
//! The ladder is here; after it, the main thread serves the monitor's link, each worker's link has a thread, and one more
//! helps whoever makes a long listing (listing/ahead.rs).
//! Not here: who is which account (monitor, from authd's grants), bytes of files (workers move those themselves).
#![forbid(unsafe_code)]

mod account;
mod desk;
mod listing;
mod monitor;
mod op;
mod resolve;
mod rules;
mod serve;
mod staged;
mod storage;
mod unfinished;
mod why;
mod zone;

use std::{fmt, process::ExitCode, sync::Arc};

use child_ipc::{
    Channel, RecvError,
    link::{
        CannotStart, Ready,
        monitor_broker::{BrokerEnd, BrokerStart, FromBroker, ToBroker},
        settings::{BrokerSettings, unpack},
    },
    types::{Blob, Permissions},
};
use child_sandbox::{Confined, Confinement, Enforcement, Role};
use nix::sys::signal::{SigSet, Signal};
use rustix::fd::{AsFd, OwnedFd};

use crate::{account::Account, desk::Desk, listing::Ahead, monitor::Monitor, resolve::Root, zone::Zone};

/// Stack of a link's thread in bytes: the deepest call formats a listing, and its buffers are on the heap.
const STACK: usize = 128 * 1024;

/// Climbs the ladder and serves until the monitor says stop or is gone.
pub fn run() -> ExitCode {
    let opened =
        child_sandbox::take_link().map_err(|e| e.to_string()).and_then(|fd| open_link(fd).map_err(|e| e.to_string()));
    let (mut link, monitor) = match opened {
        Ok(ends) => ends,
        // Without a link there is nobody to tell but the log of last resort.
        Err(why) => {
            eprintln!("caisson-broker: {why}");
            return ExitCode::FAILURE;
        }
    };
    match start(&mut link, &monitor) {
        Ok(Some(desk)) => {
            let code = serve_monitor(&mut link, &monitor, &desk);
            // However it ended, a monitor that was killed too: what the links' threads hold, they put away.
            desk.close();
            code
        }
        Ok(None) => ExitCode::FAILURE,
        Err(why) => {
            monitor.tell(&FromBroker::CannotStart(CannotStart { why: Blob::cut(why.as_bytes()) }));
            ExitCode::FAILURE
        }
    }
}

/// The monitor's link twice: one end to receive from (main thread), one to send on (every thread).
fn open_link(fd: OwnedFd) -> std::io::Result<(BrokerEnd, Arc<Monitor>)> {
    let sender = fd.as_fd().try_clone_to_owned()?;
    Ok((Channel::from_fd(fd)?, Arc::new(Monitor::new(Channel::from_fd(sender)?))))
}

/// From the first record to `Ready`; `None` when the monitor was gone before it said anything.
fn start(link: &mut BrokerEnd, monitor: &Arc<Monitor>) -> Result<Option<Arc<Desk>>, String> {
    let start = match link.recv().map(|received| received.record) {
        Ok(ToBroker::Start(start)) => start,
        Ok(_) => return Err("the first record is not Start".to_owned()),
        Err(RecvError::Closed) => return Ok(None),
        Err(RecvError::Breach(breach)) => {
            return Err(format!("{breach} (first record): are caissond and caisson-broker of the same build?"));
        }
        Err(other) => return Err(format!("recvmsg on the monitor's link: {other:?}")),
    };
    // setrlimit(2): what would make a file longer than RLIMIT_FSIZE fails with EFBIG then, and does not end us. Threads
    // inherit that.
    SigSet::from(Signal::SIGXFSZ).thread_block().map_err(|e| about(&start, format_args!("pthread_sigmask: {e}")))?;
    let (account, confined) = settle(&start, monitor)?;
    let desk = Arc::new(Desk::new(start.slots.into()));
    open_slots(&start, account, &desk, monitor)?;
    let report = confined.seal().map_err(|e| about(&start, e))?;
    monitor.tell(&FromBroker::Ready(Ready { weaker: Blob::cut(report.weaker.join("; ").as_bytes()) }));
    Ok(Some(desk))
}

/// Confines the process to the account, all but the seccomp filter.
fn settle(start: &BrokerStart, monitor: &Monitor) -> Result<(Account, Confined), String> {
    if !(1..=256).contains(&start.slots) {
        return Err(about(start, format_args!("{} slots, which must be 1 to 256", start.slots)));
    }
    let permissions = Permissions::from_bits(start.permissions).ok_or_else(|| about(start, "an unknown permission"))?;
    let mut root = Root::open_home(&start.home).map_err(|e| no_home(start, e))?;
    let settings: BrokerSettings = unpack(&start.settings).map_err(|breach| about(start, breach))?;
    let tzfile = settings.listing_zone.as_deref().map(zone::read);
    let ids = start.confine.ids.clone();
    let confined = child_sandbox::confine(Confinement {
        role: Role::Broker,
        ids: ids.map(|ids| child_sandbox::Ids { uid: ids.uid, gid: ids.gid, groups: ids.groups }),
        root: child_sandbox::Root::Directory(root.directory()),
        rights: rules::rights(permissions, settings.atomic_uploads),
        enforcement: if start.confine.best_effort { Enforcement::BestEffort } else { Enforcement::Required },
    })
    .map_err(|e| about(start, e))?;
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(u32::from(settings.umask & 0o777)));
    let root = root.settled().map_err(|e| home(start, e))?;
    let ahead = Ahead::start(STACK).map_err(|e| no_thread(start, "a thread for long listings", e))?;
    let zone = tzfile.and_then(|read| {
        let made = read.map_err(|e| e.to_string()).and_then(|tzfile| Zone::new(&tzfile).map_err(|e| e.to_string()));
        made.map_err(|why| monitor.fault(format_args!("listing_time: {why}; account {} sees UTC", start.account))).ok()
    });
    let account = Account::new(root, start, permissions, &settings, zone, ahead).map_err(|e| about(start, e))?;
    Ok((account, confined))
}

/// One thread a slot, made before the filter closes.
fn open_slots(start: &BrokerStart, account: Account, desk: &Arc<Desk>, monitor: &Arc<Monitor>) -> Result<(), String> {
    let account = Arc::new(account);
    for _ in 0..start.slots {
        let (account, desk, monitor) = (Arc::clone(&account), Arc::clone(desk), Arc::clone(monitor));
        std::thread::Builder::new()
            .name("link".to_owned())
            .stack_size(STACK)
            .spawn(move || serve::slot(&account, &desk, &monitor))
            .map_err(|e| no_thread(start, "a thread for each worker", e))?;
    }
    Ok(())
}

/// Serves the monitor's link; returns when it ends.
fn serve_monitor(link: &mut BrokerEnd, monitor: &Monitor, desk: &Desk) -> ExitCode {
    loop {
        // There may be many brokers, and most of them wait most of the time: what the last step needed may go.
        child_sandbox::rest_until_readable(&*link);
        match link.recv() {
            Ok(received) => match (received.record, received.fds.into_iter().next()) {
                (ToBroker::AddWorker(worker), Some(socket)) => {
                    if let Err(why) = desk.add(worker, socket) {
                        monitor.fault(format_args!("worker={worker} link not served: {why}"));
                    }
                }
                (ToBroker::DropWorker(worker), _) => desk.drop_worker(worker),
                (ToBroker::Stop, _) => return ExitCode::SUCCESS,
                _ => {
                    monitor.fault(format_args!("monitor's link: record out of phase"));
                    return ExitCode::FAILURE;
                }
            },
            Err(RecvError::Closed) => return ExitCode::SUCCESS,
            Err(other) => {
                monitor.fault(format_args!("monitor's link: {other:?}"));
                return ExitCode::FAILURE;
            }
        }
    }
}

fn about(start: &BrokerStart, why: impl fmt::Display) -> String {
    format!("account {}: {why}", start.account)
}

fn no_thread(start: &BrokerStart, which: &str, e: std::io::Error) -> String {
    about(start, format_args!("{which}: {e}; raise LimitNPROC of the service"))
}

fn no_home(start: &BrokerStart, errno: rustix::io::Errno) -> String {
    let home = start.home.display();
    about(start, format_args!("home {home}: {errno}; make it a directory, or set another home in caisson-users(5)"))
}

fn home(start: &BrokerStart, errno: rustix::io::Errno) -> String {
    let whose = match &start.confine.ids {
        Some(ids) => format!("uid {}", ids.uid),
        None => "the user who started caissond".to_owned(),
    };
    about(
        start,
        format_args!(
            "home cannot be entered by {whose}: {errno}; let them have search permission (chmod u+x, chown), or set another home in caisson-users(5)"
        ),
    )
}
