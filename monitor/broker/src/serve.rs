//! One worker's link: a question, an answer, in order, until the link ends.
//!
//! Reads from: a worker (hostile). A record that breaks the contract ends this link and no other; the monitor is told and
//! ends the worker. Not here: what a question means (op.rs).

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use child_ipc::{
    Breach, RecvError, SendError,
    link::{
        log::{Event, Level},
        monitor_broker::FromBroker,
        worker_broker::{Answer, BrokerEnd, Why},
    },
};
use rustix::{
    io::Errno,
    net::sockopt::{Timeout, set_socket_timeout},
};

use crate::{account::Account, desk::Desk, monitor::Monitor, op, staged::Staged};

/// A link that has said nothing for so long rests.
const SILENCE: Duration = Duration::from_secs(2);

/// How a link ended.
enum End {
    /// The worker closed it, or the monitor dropped it.
    Closed,
    /// The worker broke the contract.
    Breach(Breach),
    /// A system call on it failed.
    Fault(io::Error),
}

/// A slot's thread: serves one link after the other until the desk is closed.
pub(crate) fn slot(account: &Account, desk: &Desk, monitor: &Monitor) {
    while let Some(mut taken) = desk.take() {
        let worker = taken.worker;
        let end = serve(account, &mut taken.end);
        desk.done(taken);
        match end {
            End::Closed => {}
            End::Breach(breach) => {
                monitor.log(Level::Error, Event::Breach, format_args!("worker={worker} link=worker_broker: {breach}"));
                monitor.tell(&FromBroker::WorkerBreach(worker));
            }
            End::Fault(e) => monitor.fault(format_args!("worker={worker} link=worker_broker: {e}")),
        }
    }
}

fn serve(account: &Account, link: &mut BrokerEnd) -> End {
    let mut staged = Staged::default();
    if let Err(errno) = set_socket_timeout(&*link, Timeout::Recv, Some(SILENCE)) {
        return End::Fault(errno.into());
    }
    loop {
        let ask = match link.recv() {
            Ok(received) => received.record,
            // Nothing has come for a while: what making the link and the last question needed may go, as in lib.rs.
            Err(RecvError::WouldBlock) => {
                child_sandbox::rest_until_readable(&*link);
                continue;
            }
            Err(RecvError::Closed) => return End::Closed,
            Err(RecvError::Breach(breach)) => return End::Breach(breach),
            Err(RecvError::Io(e)) => return End::Fault(e),
        };
        let (outcome, fds) = match op::run(account, &mut staged, &ask.op) {
            Ok((done, fds)) => (Ok(done), fds),
            Err(why) => (Err(why), Vec::new()),
        };
        match answer(link, Answer { tag: ask.tag, outcome }, &fds) {
            Ok(()) => {}
            Err(SendError::Closed) => return End::Closed,
            Err(SendError::WouldBlock) => return End::Breach(Breach::OutOfPhase("a link to a broker blocks")),
            Err(SendError::Contract(breach)) => return End::Fault(io::Error::other(breach)),
            Err(SendError::Io(e)) => return End::Fault(e),
        }
    }
}

/// Sends an answer; ours are closed afterwards, the worker has its own.
fn answer(link: &mut BrokerEnd, mut answer: Answer, fds: &[OwnedFd]) -> Result<(), SendError> {
    let sent = match fds {
        [] => link.send(&answer, &[]),
        [one] => link.send(&answer, &[one.as_fd()]),
        more => link.send(&answer, &more.iter().map(AsFd::as_fd).collect::<Vec<_>>()),
    };
    match sent {
        // unix(7): more descriptors of this user are on their way than RLIMIT_NOFILE allows. That passes.
        Err(SendError::Io(e)) if !fds.is_empty() && e.raw_os_error() == Some(Errno::TOOMANYREFS.raw_os_error()) => {
            answer.outcome = Err(Why::Busy);
            link.send(&answer, &[])
        }
        sent => sent,
    }
}
