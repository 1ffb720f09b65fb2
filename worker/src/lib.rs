//! caisson-worker: the event loop that talks to the network, without privilege.
//!
//! The ladder: take descriptor 0 as the link to the monitor → its `Start` → confine → helper threads → seal → `Ready` → loop
//! ([`event::Worker::run`]). Everything else arrives over that link: listening sockets, passive sockets, the link to
//! authd, and with each grant the link to that account's broker.
//!
//! | file | what |
//! |---|---|
//! | `event` | the loop: the only place that waits |
//! | `session` | one client; `conduit` its data connection |
//! | `ftp` | the protocol: no sockets |
//! | `transfer` | the data paths |
//! | `helpers` | the threads that wait for disks |
//! | `drain` | what nobody will read |
//! | `ask`, `link` | questions to monitor, authd, brokers |
//! | `listeners`, `passive` | sockets that the monitor made |
//! | `lobby`, `proxy` | connections from proxies, and their headers |
//! | `ledger` | limits that hold over all workers |
//! | `tls` | TLS, sans-io: rustls, tickets; signatures from authd |
//! | `hub`, `log` | what sessions share; lines for the log |
//!
//! Fears: its clients. If one takes this process over, it has the client sockets, the passive sockets and the brokers
//! of accounts with a live session here, and the keys of their TLS sessions; no path, no private key, no hash, no way to
//! make a session somebody's.
#![forbid(unsafe_code)]

pub mod ask;
pub mod conduit;
mod drain;
pub mod event;
pub mod ftp;
pub mod helpers;
pub mod hub;
pub mod ledger;
pub mod link;
pub mod listeners;
pub mod lobby;
pub mod log;
pub mod passive;
pub mod proxy;
pub mod session;
pub mod tls;
pub mod transfer;

use std::process::ExitCode;

use child_ipc::{
    Channel, Received,
    link::{
        CannotStart, Confine, Ready,
        monitor_worker::{FromWorker, ToWorker, WorkerEnd, WorkerStart},
        settings::{FtpSettings, unpack},
    },
    types::{Blob, Build},
};
use child_sandbox::{Confinement, Enforcement, Rights, Role, Root};
use helpers::Helpers;
use ledger::Ledger;
use nix::sys::signal::{SigSet, Signal};

/// The program.
pub fn main() -> ExitCode {
    match climb() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("caisson-worker: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The ladder.
fn climb() -> Result<(), String> {
    // setrlimit(2): a write beyond RLIMIT_FSIZE (LimitFSIZE of the service) fails with EFBIG then, and ends one upload, not us.
    // Threads inherit that.
    SigSet::from(Signal::SIGXFSZ).thread_block().map_err(|errno| format!("pthread_sigmask: {errno}"))?;
    let fd = child_sandbox::take_link().map_err(|error| error.to_string())?;
    let mut link: WorkerEnd = Channel::from_fd(fd).map_err(|error| format!("descriptor 0: {error}"))?;
    let start = match link.recv() {
        Ok(Received { record: ToWorker::Start(start), .. }) => start,
        Ok(Received { record, .. }) => return Err(format!("link to the monitor: {record:?} came before Start")),
        Err(error) => return Err(format!("link to the monitor: {error:?}")),
    };
    let WorkerStart { build: Build { .. }, confine, worker: _, settings, ledger: regions } = start;
    let settings = unpack(&settings).map_err(|breach| format!("link to the monitor: settings: {breach}"))?;
    let ledger = ledger(&mut link, regions, &settings)?;
    let (helpers, weaker) = match enter(&confine, &settings) {
        Ok(entered) => entered,
        Err(why) => {
            let record = FromWorker::CannotStart(CannotStart { why: Blob::cut(why.as_bytes()) });
            // If the monitor is gone as well, standard error has to do.
            return link.send(&record, &[]).map_err(|_| why);
        }
    };
    let mut worker = event::Worker::new(link, settings, ledger, helpers).map_err(|error| format!("epoll: {error}"))?;
    worker.tell(FromWorker::Ready(Ready { weaker: Blob::cut(weaker.join("; ").as_bytes()) }));
    worker.run()
}

/// Takes the regions of the ledger, which come next.
fn ledger(link: &mut WorkerEnd, (key, regions): (u64, u32), settings: &FtpSettings) -> Result<Ledger, String> {
    let (mut own, mut others) = (None, [Vec::new(), Vec::new()]);
    for _ in 0..regions {
        match link.recv() {
            Ok(Received { record: ToWorker::Region(true), mut fds }) => own = fds.pop(),
            Ok(Received { record: ToWorker::Region(false), fds }) => others[usize::from(own.is_some())].extend(fds),
            Ok(Received { record, .. }) => {
                return Err(format!("link to the monitor: {record:?} where a Region was due"));
            }
            Err(error) => return Err(format!("link to the monitor: {error:?}")),
        }
    }
    let own = own.ok_or("link to the monitor: no Region of our own")?;
    Ledger::new(own, others, key, settings).map_err(|error| format!("region of the ledger: {error}"))
}

/// Confines the process, with its helper threads; what is weaker than it should be is told.
fn enter(confine: &Confine, settings: &FtpSettings) -> Result<(Helpers, Vec<String>), String> {
    let order = Confinement {
        role: Role::WorkerFtp,
        ids: confine.ids.as_ref().map(|ids| child_sandbox::Ids {
            uid: ids.uid,
            gid: ids.gid,
            groups: ids.groups.clone(),
        }),
        root: Root::Empty,
        rights: Rights::NONE,
        enforcement: if confine.best_effort { Enforcement::BestEffort } else { Enforcement::Required },
    };
    let confined = child_sandbox::confine(order).map_err(|error| error.to_string())?;
    tls::prepare().map_err(|error| format!("random numbers for TLS: {error:?}"))?;
    let helpers = Helpers::start(settings)
        .map_err(|error| format!("helper threads: {error}; raise LimitNPROC of the service"))?;
    let report = confined.seal().map_err(|error| error.to_string())?;
    Ok((helpers, report.weaker))
}
