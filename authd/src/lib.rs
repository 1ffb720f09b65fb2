//! caisson-authd: alone with passwords and keys.
//!
//! Started by the monitor with its link as descriptor 0. Confines itself (no files, no network, no exec), then answers
//! the workers' password checks and tells the monitor, on its own link, which session has proved to be which account.
//! Reads from: the monitor (user table, settings), workers (hostile). Never opens, connects or executes anything.
//!
//! | module | does |
//! |---|---|
//! | [`serve`] | the loop and the links |
//! | [`checks`] | from a question to its verdict |
//! | [`queue`], [`pool`] | who is next; the threads that compute |
//! | [`certificate`] | whether a client has its certificate's key |
//! | [`verify`] | argon2id; stored hashes are read by [`stored_hash`] |
//! | [`users`], [`reason`] | the table; why it lets nobody in |
//! | [`cache`] | credentials that were right a moment ago |
//! | [`delay`], [`network`] | repeated failure; what one source is |
//! | [`keys`] | the files of `[[certificate]]` |
//! | [`sign`] | the thread that signs TLS handshakes |
//! | [`hash_password`] | the command that makes a stored hash |
#![forbid(unsafe_code)]

pub mod cache;
pub mod certificate;
pub mod checks;
pub mod delay;
pub mod error;
pub mod hash_password;
pub mod keys;
pub mod network;
pub mod outlet;
pub mod pool;
pub mod queue;
pub mod reason;
pub mod serve;
pub mod sign;
pub mod users;
pub mod verify;

use std::{process::ExitCode, time::Duration};

use child_ipc::{
    Channel, RecvError,
    link::{
        CannotStart, Confine, Ready,
        monitor_authd::{AuthdEnd, AuthdSettings, AuthdStart, FromAuthd, ToAuthd},
    },
    types::Blob,
};
use child_sandbox::{Confinement, Enforcement, Rights, Role, Root};

use crate::{
    cache::Cache, checks::Desk, error::Error, outlet::Outlet, pool::Pool, serve::Server, sign::Signer, users::Table,
};

const USAGE: &str = "usage: caisson-authd hash-password";

/// The program: `caisson-authd` as started by caissond, or `caisson-authd hash-password`.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let ended = match arguments.as_slice() {
        [] => serve().map_err(|error| error.to_string()),
        [command] if command == "hash-password" => {
            hash_password::run().map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
        }
        _ => Err(USAGE.to_owned()),
    };
    match ended {
        Ok(code) => code,
        Err(line) => {
            eprintln!("caisson-authd: {line}");
            ExitCode::FAILURE
        }
    }
}

/// Takes the link, gets ready, serves.
fn serve() -> Result<ExitCode, Error> {
    let link = child_sandbox::take_link().map_err(Error::Sandbox)?;
    let mut link: AuthdEnd = Channel::from_fd(link).map_err(Error::fault("descriptor 0"))?;
    match start(&mut link) {
        Ok((ready, desk, signer)) => {
            let mut monitor = Outlet::new(link);
            monitor.push(FromAuthd::Ready(ready));
            Server::new(monitor, desk, signer).run().map(|()| ExitCode::SUCCESS)
        }
        Err(error) => {
            let why = Blob::cut(error.to_string().as_bytes());
            // The monitor says it; only if it cannot be told, the line on standard error is all there is.
            link.send(&FromAuthd::CannotStart(CannotStart { why }), &[]).map(|()| ExitCode::FAILURE).map_err(|_| error)
        }
    }
}

/// The ladder: first record, confinement, threads, seal.
fn start(link: &mut AuthdEnd) -> Result<(Ready, Desk, Signer), Error> {
    let AuthdStart { confine, settings, .. } = receive_start(link)?;
    let AuthdSettings { max_concurrent_password_checks: threads, login_cache_ttl_secs: ttl } = settings;
    if !(1..=pool::MOST).contains(&threads) {
        return Err(Error::Refused("max_concurrent_password_checks in caisson.toml must be 1 to 64"));
    }
    let confined = child_sandbox::confine(confinement(confine)).map_err(Error::Sandbox)?;
    let pool = Pool::start(threads as usize).map_err(Error::fault("starting a check thread"))?;
    let signer = Signer::start().map_err(Error::fault("starting the signing thread"))?;
    let cache = Cache::new(Duration::from_secs(ttl.into())).map_err(Error::fault("key of the login cache"))?;
    let users = Table::empty().map_err(Error::fault("user table"))?;
    let report = confined.seal().map_err(Error::Sandbox)?;
    let weaker = Blob::cut(report.weaker.join("; ").as_bytes());
    Ok((Ready { weaker }, Desk::new(users, cache, pool), signer))
}

fn receive_start(link: &mut AuthdEnd) -> Result<AuthdStart, Error> {
    match link.recv() {
        Ok(received) => match received.record {
            ToAuthd::Start(start) => Ok(start),
            _ => Err(Error::Violation(child_ipc::Breach::OutOfPhase("Start comes first"))),
        },
        Err(RecvError::Breach(breach)) => Err(Error::Violation(breach)),
        Err(RecvError::Io(error)) => Err(Error::fault("recvmsg")(error)),
        Err(RecvError::Closed | RecvError::WouldBlock) => {
            Err(Error::Refused("caissond closed the link before it said anything"))
        }
    }
}

fn confinement(confine: Confine) -> Confinement<'static> {
    let ids = confine.ids.map(|ids| child_sandbox::Ids { uid: ids.uid, gid: ids.gid, groups: ids.groups });
    let enforcement = if confine.best_effort { Enforcement::BestEffort } else { Enforcement::Required };
    Confinement { role: Role::Authd, ids, root: Root::Empty, rights: Rights::NONE, enforcement }
}
