//! The data connection of one session: from the port that was agreed on to the last byte.
//!
//! Reads from: whoever reaches the passive port (only the client's own address is let in, or its proxy's), and the client.
//! Descriptors are watched only when there is something to wait for: a small file needs none.

use std::{
    net::IpAddr,
    num::NonZeroU32,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use child_ipc::{
    link::log::{Event as Happened, Level},
    types::{Port, SessionId},
};
use mio::Interest;
use rustix::{
    io::Errno,
    net::{Shutdown, getpeername, shutdown, sockopt::socket_error},
};

use crate::{
    drain::drain,
    ftp::data::{How, Via},
    helpers::{Errand, Number, Ticket},
    hub::{Hub, NEVER, Source},
    passive::{Accepted, Socket},
    transfer::{Step, Transfer, outcome},
};

/// How far the data connection is.
#[derive(Debug, Default)]
enum Connection {
    /// Nobody has asked for one.
    #[default]
    None,
    /// The client is to connect to the passive port.
    Expected,
    /// The monitor is asked to connect.
    Ordered,
    /// It is being connected by the kernel.
    Connecting(OwnedFd),
    /// It is there.
    Open(OwnedFd),
    /// All has moved, but it has not ended.
    Ending(OwnedFd, Ending),
    /// A helper has it, and the transfer.
    Lent(Arc<OwnedFd>, Lent),
    /// It did not come about.
    Failed,
}

/// What an end waits for.
#[derive(Debug, Clone, Copy)]
struct Ending {
    /// Of a download: bytes that the kernel has not sent yet, and the end, which counts as one.
    left: usize,
    /// Of an upload: when it has, milliseconds as [`Hub::now`].
    look: u64,
}

/// A turn that a helper takes.
#[derive(Debug)]
struct Lent {
    ticket: Ticket,
    /// Bytes moved before.
    moved: u64,
    /// [`Transfer::progress`] before.
    progress: u64,
    /// The connection had something to tell meanwhile.
    stirred: bool,
    /// It is an upload.
    receives: bool,
}

/// What a turn brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It waits; nothing has moved.
    Waits,
    /// It waits; something has moved.
    Moved,
    /// There is more to do at once.
    More,
    /// It has ended, after so many bytes; everything is closed.
    Ended(How, u64),
}

/// An upload under a hidden name.
#[derive(Debug, Clone, Copy)]
pub struct Staged {
    /// Whose it is.
    pub login: SessionId,
    /// The place of its broker's link.
    pub broker: usize,
    /// How the broker calls it.
    pub number: NonZeroU32,
}

/// The data connection of one session.
#[derive(Debug, Default)]
pub struct Conduit {
    /// The passive port the client was told.
    port: Option<Socket>,
    /// The passive port is watched.
    port_watched: bool,
    /// Behind a proxy, the passive connection may come from there as well.
    proxy: Option<IpAddr>,
    connection: Connection,
    /// What the connection is watched for.
    watched: Option<Interest>,
    transfer: Option<Transfer>,
    /// A question to the monitor is open; one at a time (`ConnectBack`).
    asked: bool,
    /// The upload, while it has a hidden name: whom to tell when it comes to nothing.
    staged: Option<Staged>,
    /// What is to be asked when that one is answered.
    then: Option<(SessionId, Port)>,
}

impl Conduit {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.port.is_none() && self.transfer.is_none() && !self.asked && matches!(self.connection, Connection::None)
    }

    /// The passive port held, with an empty backlog.
    pub fn port(&mut self) -> Option<Port> {
        self.port.take_if(|port| !port.drain());
        self.port.as_ref().map(Socket::port)
    }

    /// Takes a passive socket, for a client who has come by this proxy, if by any.
    pub fn hold(&mut self, socket: Socket, proxy: Option<IpAddr>) {
        (self.port, self.proxy) = (Some(socket), proxy);
    }

    /// Whether the client is connected.
    pub fn is_open(&self) -> bool {
        matches!(self.connection, Connection::Open(_) | Connection::Lent(..) | Connection::Ending(..))
    }

    /// Whether the client is connected, and its handshake over if there has to be one.
    pub fn is_ready(&self) -> bool {
        let shakes = |transfer: &Transfer| transfer.stream().is_some_and(|stream| !stream.is_ready());
        self.is_open() && !self.transfer.as_ref().is_some_and(shakes)
    }

    /// Bytes moved so far.
    pub fn moved(&self) -> u64 {
        match &self.connection {
            Connection::Lent(_, lent) => lent.moved,
            _ => self.transfer.as_ref().map_or(0, Transfer::moved),
        }
    }

    /// Whether a question to the monitor about the control connection is open.
    pub fn asks_monitor(&self) -> bool {
        self.asked
    }

    /// Begins to get the connection.
    pub fn open(&mut self, via: Via, login: SessionId, control: &OwnedFd, key: Place, hub: &mut Hub) {
        match via {
            Via::Nothing => self.connection = Connection::Failed,
            Via::Passive => {
                self.connection = Connection::Expected;
                self.accept(key, hub);
            }
            Via::Active(port) => {
                self.connection = Connection::Ordered;
                if self.asked {
                    self.then = Some((login, port));
                } else {
                    self.ask(login, port, control, hub);
                }
            }
        }
    }

    /// Asks the monitor for an active connection.
    fn ask(&mut self, login: SessionId, port: Port, control: &OwnedFd, hub: &mut Hub) {
        self.asked = hub.ask_connect_back(login, port, control.as_fd());
        if !self.asked {
            self.connection = Connection::Failed;
        }
    }

    /// The monitor's answer to the question about an active connection.
    pub fn connecting(&mut self, fd: Option<OwnedFd>, control: &OwnedFd, key: Place, hub: &mut Hub) -> Turn {
        self.asked = false;
        if let Some((login, port)) = self.then.take() {
            self.ask(login, port, control, hub);
            return self.turn(key, hub);
        }
        if !matches!(self.connection, Connection::Ordered) {
            return Turn::Waits;
        }
        self.connection = match fd {
            None => Connection::Failed,
            Some(fd) if getpeername(&fd).is_ok() => Connection::Open(fd),
            Some(fd) => match hub.watch(fd.as_fd(), Source::Data(key.0), Interest::WRITABLE, false) {
                Ok(()) => {
                    self.watched = Some(Interest::WRITABLE);
                    Connection::Connecting(fd)
                }
                Err(_) => Connection::Failed,
            },
        };
        self.turn(key, hub)
    }

    /// The broker is gone, and with it what was staged.
    pub fn broker_lost(&mut self) {
        self.staged = None;
    }

    /// Takes the file and moves what can be moved now.
    pub fn begin(&mut self, transfer: Transfer, staged: Option<Staged>, key: Place, hub: &mut Hub) -> Turn {
        let waits_for_client = transfer.receives() || transfer.stream().is_some();
        (self.transfer, self.staged) = (Some(transfer), staged);
        if matches!(self.connection, Connection::Expected) {
            self.accept(key, hub);
        }
        match self.connection {
            // Most clients send, or begin with their handshake, only after our 150: there is nothing to read yet, and the loop tells when there is.
            Connection::Open(_) if waits_for_client => self.wait(key, hub),
            Connection::Expected => self.expect(key, hub),
            _ => self.turn(key, hub),
        }
    }

    /// Something happened to the passive port or the connection, or the next turn has come.
    pub fn turn(&mut self, key: Place, hub: &mut Hub) -> Turn {
        match &mut self.connection {
            Connection::Expected if self.transfer.is_some() => self.accept(key, hub),
            Connection::Connecting(_) => self.connected(),
            Connection::Lent(_, lent) => lent.stirred = true,
            _ => {}
        }
        let Some(transfer) = &mut self.transfer else { return Turn::Waits };
        let data = match &self.connection {
            Connection::Open(data) => data.as_fd(),
            Connection::Failed => return self.end(How::NoConnection, hub),
            Connection::Expected => return self.expect(key, hub),
            Connection::Ending(..) => return self.ending(hub),
            _ => return Turn::Waits,
        };
        let before = transfer.progress();
        let step = transfer.step(data, &mut hub.tools, hub.share);
        self.go_on(step, before, key, hub)
    }

    /// What a step means that began with this [`Transfer::progress`].
    fn go_on(&mut self, step: Step, before: u64, key: Place, hub: &mut Hub) -> Turn {
        let moved = self.transfer.as_ref().is_some_and(|transfer| transfer.progress() > before);
        let turn = match (outcome(step), step) {
            (Some(How::Complete), _) => self.complete(key, hub),
            (Some(how), _) => self.end(how, hub),
            (None, Step::More) => Turn::More,
            (None, Step::Cold) => self.lend(key, hub),
            (None, _) => self.wait(key, hub),
        };
        if turn == Turn::Waits && moved { Turn::Moved } else { turn }
    }

    /// All has moved. A download has ended when the kernel has sent it, and its end, which for a slow client takes a while
    /// (RFC 959 5.2: 226 comes behind that). An upload under a hidden name has ended when its client is seen to live on.
    fn complete(&mut self, key: Place, hub: &mut Hub) -> Turn {
        let Connection::Open(data) = &self.connection else { return self.end(How::NoConnection, hub) };
        let receives = self.transfer.as_ref().is_some_and(Transfer::receives);
        if receives && self.staged.is_none() {
            return self.end(How::Complete, hub);
        }
        if !receives && shutdown(data, Shutdown::Write).is_err() {
            return self.end(How::Reset, hub);
        }
        let left = child_sandbox::unsent(data).unwrap_or(0);
        if !receives && left == 0 {
            return self.end(How::Complete, hub);
        }
        if let Connection::Open(data) = std::mem::take(&mut self.connection) {
            // What is heard is that the client has taken all (the state changes then), or has closed its side: nobody needs to
            // ask again and again.
            let interest = Interest::READABLE.add(Interest::WRITABLE);
            if hub.watch(data.as_fd(), Source::Data(key.0), interest, self.watched.is_some()).is_ok() {
                self.watched = Some(interest);
            }
            let look = if receives { hub.look_soon(key.0) } else { NEVER };
            self.connection = Connection::Ending(data, Ending { left, look });
        }
        Turn::Moved
    }

    /// Looks again whether it has ended.
    fn ending(&mut self, hub: &mut Hub) -> Turn {
        let Connection::Ending(data, ending) = &mut self.connection else { return Turn::Waits };
        if self.transfer.as_ref().is_some_and(Transfer::receives) {
            return if hub.now >= ending.look { self.end(How::Complete, hub) } else { Turn::Waits };
        }
        let before = std::mem::replace(&mut ending.left, child_sandbox::unsent(&*data).unwrap_or(0));
        if !matches!(socket_error(&*data), Ok(Ok(()))) {
            return self.end(How::Reset, hub);
        }
        match ending.left {
            0 => {
                // What the client has said meanwhile, its close_notify say, would make of our close a reset, and that would take
                // along what is on its way to it (RFC 1122 4.2.2.13).
                drain(&*data);
                self.end(How::Complete, hub)
            }
            left if left < before => Turn::Moved,
            _ => Turn::Waits,
        }
    }

    /// Has a helper take the next turn.
    fn lend(&mut self, key: Place, hub: &mut Hub) -> Turn {
        let (Connection::Open(data), Some(transfer)) = (std::mem::take(&mut self.connection), self.transfer.take())
        else {
            return self.end(How::NoConnection, hub);
        };
        let (moved, progress, receives) = (transfer.moved(), transfer.progress(), transfer.receives());
        let data = Arc::new(data);
        match hub.helpers.give(key.0, Errand::Turn(Box::new(transfer), Arc::clone(&data))) {
            Ok(ticket) => {
                self.connection = Connection::Lent(data, Lent { ticket, moved, progress, stirred: false, receives });
                Turn::Waits
            }
            Err(_) => self.end(How::File(Errno::AGAIN.raw_os_error()), hub),
        }
    }

    /// A helper has taken a turn; the transfer comes back if this conduit does not know of it.
    pub fn came_back(
        &mut self,
        (number, transfer, step): (Number, Box<Transfer>, Step),
        key: Place,
        hub: &mut Hub,
    ) -> Result<Turn, Box<Transfer>> {
        match std::mem::take(&mut self.connection) {
            Connection::Lent(data, lent) if lent.ticket.is(number) => {
                self.connection = Arc::into_inner(data).map_or(Connection::Failed, Connection::Open);
                self.transfer = Some(*transfer);
                if lent.ticket.is_given_up() && outcome(step).is_none() {
                    return Ok(self.end(How::Aborted, hub));
                }
                // What stirred it may be what the helper found missing: it is not told again.
                let step = if step == Step::Blocked && lent.stirred { Step::More } else { step };
                Ok(self.go_on(step, lent.progress, key, hub))
            }
            other => {
                self.connection = other;
                Err(transfer)
            }
        }
    }

    /// ABOR: cuts the transfer. One that a helper writes to a file has ended only when the helper says so.
    pub fn abort(&mut self, hub: &mut Hub) -> Turn {
        match &self.connection {
            Connection::Lent(_, lent) if lent.receives => {
                lent.ticket.give_up();
                Turn::Waits
            }
            _ => self.end(How::Aborted, hub),
        }
    }

    /// Closes everything before a reply is sent, so that the client sees the end of what it was sent first (RFC 959 5.2).
    ///
    /// After a complete upload nobody waits for that end: the reply comes first. Nor does anybody wait for the file.
    pub fn end(&mut self, how: How, hub: &mut Hub) -> Turn {
        let moved = self.moved();
        let how = if how == How::Reset && self.transfer.as_ref().is_some_and(Transfer::owes_nothing) {
            How::Complete
        } else {
            how
        };
        if how == How::Complete
            && let Some(transfer) = self.transfer.take_if(|transfer| !transfer.closes_slowly())
        {
            if transfer.receives()
                && let Connection::Open(data) = std::mem::take(&mut self.connection)
            {
                hub.late.push(data);
            }
            hub.late.push(transfer.into_file());
        }
        // Of a complete one, the session decides.
        let staged = self.staged.take_if(|_| how == How::Complete);
        self.cut(hub);
        self.staged = staged;
        Turn::Ended(how, moved)
    }

    /// The complete upload that waits for its name.
    pub fn take_staged(&mut self) -> Option<Staged> {
        self.staged.take()
    }

    /// Closes connection and file and gives the port back. An open question to the monitor stays open.
    pub fn cut(&mut self, hub: &mut Hub) {
        if let Some(staged) = self.staged.take() {
            hub.discard(staged);
        }
        if let Connection::Lent(data, lent) = &self.connection {
            hub.helpers.forget(&lent.ticket);
            // The helper holds it for now: closing ours would tell neither the client nor the loop.
            let _ = shutdown(data, Shutdown::Write);
            hub.unwatch(data.as_fd());
        }
        if let Some(transfer) = self.transfer.take_if(|transfer| transfer.closes_slowly()) {
            hub.helpers.close(transfer.into_files());
        }
        (self.connection, self.watched, self.transfer, self.then) = (Connection::None, None, None, None);
        self.give_port_back(hub);
    }

    fn give_port_back(&mut self, hub: &mut Hub) {
        if let Some(port) = self.port.take() {
            if std::mem::take(&mut self.port_watched) {
                hub.unwatch(port.as_fd());
            }
            hub.pool.release(port, hub.now);
            hub.due_at(crate::passive::Pool::due(hub.now));
        }
    }

    fn accept(&mut self, key: Place, hub: &mut Hub) {
        let Some(port) = &self.port else {
            self.connection = Connection::Failed;
            return;
        };
        let (accepted, strangers) = port.accept(key.1, self.proxy);
        if strangers > 0 {
            hub.log(
                Level::Warning,
                Happened::Refused,
                None,
                format_args!("reason=\"data connections from strangers\" count={strangers} peer={}", key.1),
            );
        }
        match accepted {
            Accepted::Nobody => {}
            Accepted::Failed(_) => self.connection = Connection::Failed,
            Accepted::Client(fd) => {
                self.connection = Connection::Open(fd);
                self.give_port_back(hub);
            }
        }
    }

    fn connected(&mut self) {
        self.connection = match std::mem::take(&mut self.connection) {
            Connection::Connecting(fd) => match (socket_error(&fd), getpeername(&fd)) {
                (Ok(Ok(())), Ok(_)) => Connection::Open(fd),
                (Ok(Ok(())), Err(rustix::io::Errno::NOTCONN)) => Connection::Connecting(fd),
                _ => Connection::Failed,
            },
            other => other,
        };
    }

    /// Waits for the client to connect.
    fn expect(&mut self, key: Place, hub: &mut Hub) -> Turn {
        if let (Some(port), false) = (&self.port, self.port_watched) {
            if hub.watch(port.as_fd(), Source::Passive(key.0), Interest::READABLE, false).is_err() {
                return self.end(How::NoConnection, hub);
            }
            self.port_watched = true;
        }
        Turn::Waits
    }

    /// Waits for the connection to give or take more.
    fn wait(&mut self, key: Place, hub: &mut Hub) -> Turn {
        let (Connection::Open(data), Some(transfer)) = (&self.connection, &self.transfer) else { return Turn::Waits };
        let interest = match (transfer.stream(), transfer.receives()) {
            (Some(_), _) => Interest::READABLE | Interest::WRITABLE,
            (None, true) => Interest::READABLE,
            (None, false) => Interest::WRITABLE,
        };
        if self.watched != Some(interest) {
            if hub.watch(data.as_fd(), Source::Data(key.0), interest, self.watched.is_some()).is_err() {
                return self.end(How::NoConnection, hub);
            }
            self.watched = Some(interest);
        }
        Turn::Waits
    }
}

/// A session's place, and its client's address.
#[derive(Debug, Clone, Copy)]
pub struct Place(pub usize, pub IpAddr);
