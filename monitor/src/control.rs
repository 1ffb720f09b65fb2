//! The control socket: caissonctl's questions, one a connection.
//!
//! Runs as root. Reads from: whoever can connect, checked by SO_PEERCRED: root, or the uid we run as. Bounded clients, bounded
//! answers. What the commands do is reload.rs's and the workers' business.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ipc::link::control::{Command, Reply, Request};
use ipc::link::monitor_worker::ToWorker;
use ipc::types::{Blob, UserName};
use ipc::{Channel, Peer};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::{AtFlags, CWD, Mode, chmodat, mkdir, unlink};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::net::{accept_with, bind, connect, listen, socket_with};
use rustix::process::{Pid, geteuid, getpid};

use crate::monitor::{CONTROL, Monitor};
use crate::{answer::grant::sessions_of, reload};

/// Most connections at once; more are closed.
const CLIENTS: usize = 8;
/// Most brokers `status` lists.
const LISTED: usize = 500;

/// The bound socket and its clients.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    socket: OwnedFd,
    clients: BTreeMap<u32, Peer<Reply, Request>>,
}

impl Control {
    /// Binds the socket, mode 0600. The error names the setting.
    pub fn bind(path: &Path, epoll: &Rc<OwnedFd>) -> Result<Control, String> {
        let fail = |errno: Errno| match errno {
            Errno::EXIST => format!("control_socket: {}: in use; is caissond running already?", path.display()),
            errno => format!("control_socket: {}: {errno}", path.display()),
        };
        let listening = || {
            let address = SocketAddrUnix::new(path)?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let fresh = || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
            let _ = path.parent().map(|dir| mkdir(dir, Mode::from_raw_mode(0o700)));
            match connect(fresh()?, &address) {
                Err(Errno::NOENT) => {}
                // Left behind by a crash: nobody answers.
                Err(Errno::CONNREFUSED) => unlink(path)?,
                _ => return Err(Errno::EXIST),
            }
            let socket = fresh()?;
            // The umask is 0o077 (start.rs): nobody can connect before the mode is set.
            bind(&socket, &address)?;
            chmodat(CWD, path, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
            listen(&socket, 8)?;
            epoll::add(&**epoll, &socket, EventData::new_u64(CONTROL.into()), EventFlags::IN)?;
            Ok(socket)
        };
        Ok(Control { path: path.to_owned(), socket: listening().map_err(fail)?, clients: BTreeMap::new() })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = unlink(&self.path);
    }
}

/// Somebody connects.
pub(crate) fn accept(m: &mut Monitor) {
    let id = m.new_id();
    let Some(control) = m.control.as_mut() else { return };
    let Ok(client) = accept_with(&control.socket, SocketFlags::CLOEXEC) else { return };
    let admin = sockopt::socket_peercred(&client).is_ok_and(|peer| peer.uid.is_root() || peer.uid == geteuid());
    if !admin || control.clients.len() >= CLIENTS {
        return;
    }
    if let Ok(peer) = Channel::from_fd(client).and_then(|link| Peer::new(link, &m.epoll, id)) {
        control.clients.insert(id, peer);
    }
}

/// A client asks, reads on, or goes.
pub(crate) fn serve(m: &mut Monitor, id: u32) {
    let Some(control) = m.control.as_mut() else { return };
    let Some(client) = control.clients.get_mut(&id) else { return };
    match client.flush().and_then(|()| client.recv()) {
        Ok(Some(request)) => obey(m, id, request.record.command),
        Ok(None) => {}
        Err(_) => drop(control.clients.remove(&id)),
    }
}

fn obey(m: &mut Monitor, id: u32, command: Command) {
    match command {
        Command::Reload => reload::ask(m, Some(id)),
        Command::Status => {
            let lines = status(m);
            tell(m, id, &lines, true);
        }
        Command::Kick(user) => {
            let kicked = kick(m, &user);
            tell(m, id, &[format!("{kicked} sessions of {user} closed")], kicked > 0);
        }
    }
}

/// Answers a client, if it is still there: lines, and whether it was done.
pub(crate) fn tell(m: &mut Monitor, id: u32, lines: &[String], done: bool) {
    let Some(control) = m.control.as_mut() else { return };
    let Some(client) = control.clients.get_mut(&id) else { return };
    let lines = lines.iter().map(|line| Reply::Line(Blob::cut(line.as_bytes())));
    if !lines.chain([Reply::Done(done)]).all(|reply| client.send(reply, Vec::new()).is_ok()) {
        control.clients.remove(&id);
    }
}

/// Closes every session of an account; how many there were.
pub(crate) fn kick(m: &mut Monitor, user: &UserName) -> usize {
    let of_account = m.brokers.iter().filter(|(_, broker)| broker.account == *user);
    let mut kicked = 0;
    for (&id, _) in of_account {
        for worker in m.workers.values_mut() {
            let sessions = worker.sessions.of(id);
            kicked += sessions.len();
            sessions.iter().for_each(|&(session, _)| worker.child.send(ToWorker::Kick(session), Vec::new()));
        }
    }
    kicked
}

fn status(m: &Monitor) -> Vec<String> {
    let line = |name: &str, pid: Pid, sessions: usize| format!("{name} pid {} sessions {sessions}", pid.as_raw_pid());
    let total = m.workers.values().map(|worker| worker.sessions.len()).sum();
    let workers = m.workers.values().map(|w| line(&w.child.name, w.child.pid, w.sessions.len()));
    let brokers = m.brokers.iter().map(|(&id, b)| line(&b.child.name, b.child.pid, sessions_of(m, id)));
    let mut lines = vec![line("monitor", getpid(), total)];
    let authd = m.authd.iter().map(|authd| line("authd", authd.pid, total));
    lines.extend(authd.chain(workers).chain(brokers.take(LISTED)));
    if m.brokers.len() > LISTED {
        lines.push(format!("and {} brokers more", m.brokers.len() - LISTED));
    }
    lines
}
