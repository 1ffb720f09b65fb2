//! The control socket: caissonctl's questions, one a connection.
//!
//! Runs as root. Reads from: whoever can connect, checked by SO_PEERCRED: root, or the uid we run as. Bounded clients, bounded
//! answers. What the commands do is reload.rs's and the workers' business.

use std::{
    collections::BTreeMap,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    rc::Rc,
};

use ipc::{
    Channel,
    link::{
        control::{Command, Reply, Request},
        monitor_worker::ToWorker,
    },
    types::{Blob, UserName},
};
use rustix::{
    event::epoll::{self, EventData, EventFlags},
    fs::{CWD, Mode},
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
        sockopt,
    },
    process::geteuid,
};

use crate::{answer::sessions_of, event::Token, monitor::Monitor, peer::Peer, reload};

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
        let fail = |e: Errno| format!("control_socket: {}: {}", path.display(), io::Error::from(e));
        let address = SocketAddrUnix::new(path).map_err(fail)?;
        let fresh = || {
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
        };
        let socket = fresh().map_err(fail)?;
        if let Some(dir) = path.parent() {
            let _ = rustix::fs::mkdir(dir, Mode::from_raw_mode(0o755));
        }
        if path.exists() {
            // A socket nobody answers on was left behind by a crash.
            if connect(fresh().map_err(fail)?, &address) != Err(Errno::CONNREFUSED) {
                return Err(format!("control_socket: {}: in use; is caissond running already?", path.display()));
            }
            rustix::fs::unlink(path).map_err(fail)?;
        }
        // The umask is 0o077 (start.rs): nobody can connect before the mode is set.
        bind(&socket, &address).map_err(fail)?;
        rustix::fs::chmodat(CWD, path, Mode::RUSR | Mode::WUSR, rustix::fs::AtFlags::empty()).map_err(fail)?;
        listen(&socket, 8).map_err(fail)?;
        epoll::add(&**epoll, &socket, EventData::new_u64(Token::Control.number()), EventFlags::IN).map_err(fail)?;
        Ok(Control { path: path.to_owned(), socket, clients: BTreeMap::new() })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(&self.path);
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
    let peer = Channel::from_fd(client).and_then(|link| Peer::new(link, &m.epoll, Token::Client(id).number()));
    if let Ok(peer) = peer {
        control.clients.insert(id, peer);
    }
}

/// A client asks, reads on, or goes.
pub(crate) fn serve(m: &mut Monitor, id: u32, writable: bool) {
    let Some(mut client) = m.control.as_mut().and_then(|control| control.clients.remove(&id)) else { return };
    let stays = if writable {
        client.flush().is_ok()
    } else {
        match client.recv() {
            Ok(Some(request)) => {
                let (lines, done) = obey(m, request.record.command);
                let lines = lines.iter().map(|line| Reply::Line(Blob::cut(line.as_bytes())));
                lines.chain([Reply::Done(done)]).all(|reply| client.send(reply, Vec::new()).is_ok())
            }
            Ok(None) => true,
            Err(_) => false,
        }
    };
    if let Some(control) = m.control.as_mut().filter(|_| stays) {
        control.clients.insert(id, client);
    }
}

fn obey(m: &mut Monitor, command: Command) -> (Vec<String>, bool) {
    match command {
        Command::Reload => match reload::reload(m) {
            Ok(()) => (vec!["reloaded".to_owned()], true),
            Err(why) => (vec![why], false),
        },
        Command::Status => (status(m), true),
        Command::Kick(user) => {
            let kicked = kick(m, &user);
            (vec![format!("{kicked} sessions of {user} closed")], kicked > 0)
        }
    }
}

/// Closes every session of an account; how many there were.
pub(crate) fn kick(m: &mut Monitor, user: &UserName) -> usize {
    let brokers: Vec<_> = m.brokers.iter().filter(|(_, broker)| broker.account == *user).map(|(&id, _)| id).collect();
    let mut kicked = 0;
    for worker in m.workers.values_mut() {
        for session in brokers.iter().flat_map(|&id| worker.sessions.all_of(id)).collect::<Vec<_>>() {
            worker.child.send(ToWorker::Kick(session), Vec::new());
            kicked += 1;
        }
    }
    kicked
}

fn status(m: &Monitor) -> Vec<String> {
    let mut lines = vec![format!("monitor pid {}", std::process::id())];
    lines.extend(m.authd.iter().map(|authd| format!("{} pid {}", authd.name, authd.pid.as_raw_nonzero())));
    lines.extend(m.workers.values().map(|worker| {
        format!("{} pid {} sessions {}", worker.child.name, worker.child.pid.as_raw_nonzero(), worker.sessions.len())
    }));
    lines.extend(m.brokers.iter().take(LISTED).map(|(&id, broker)| {
        format!("{} pid {} sessions {}", broker.child.name, broker.child.pid.as_raw_nonzero(), sessions_of(m, id))
    }));
    if m.brokers.len() > LISTED {
        lines.push(format!("and {} brokers more", m.brokers.len() - LISTED));
    }
    lines
}
