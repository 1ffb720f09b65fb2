//! One client: its control connection, its conversation, its data connection.
//!
//! Reads from: the client (hostile). An idle session holds no buffer: input is read into the worker's one, output is
//! written from the worker's one; only what is unfinished or unsent is kept, and bounded.
//! Not here: what a line means (ftp/), waiting (event.rs).

use std::{
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
};

use child_ipc::{
    link::{
        log::{Event as Happened, Level},
        settings::{FtpSettings, Require},
    },
    types::{BrokerId, ListenerId, SessionId},
};
use mio::Interest;
use rustix::{
    io::Errno,
    net::{RecvFlags, Shutdown, recv, shutdown},
};
use zeroize::Zeroize;

use crate::{
    ask::Answered,
    conduit::{Conduit, Place, Staged, Turn},
    drain::drain,
    ftp::{
        Event,
        data::{Ending, How},
        line,
        state::Wait,
        talk::Talk,
    },
    helpers::{Back, Number, Ticket},
    hub::{Hub, NEVER, QUEUE_BYTES, Source},
    passive::Socket,
};

mod arrival;
mod errands;
mod input;
mod orders;
mod output;
mod secured;

use arrival::Rare;
pub use arrival::{Approach, Arrival};

/// Lines answered in one turn.
const LINES_PER_TURN: usize = 64;
/// No more lines are answered while so many bytes of replies wait to be sent.
const OUT_BYTES: usize = 64 << 10;
/// The longest wait for authd when `login_timeout_secs` is off, milliseconds.
const VERDICT_MS: u64 = 120_000;

/// Who the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Login {
    /// Nobody.
    None,
    /// Somebody who is being checked.
    Asked(SessionId),
    /// An account's; its broker's link is at this place.
    Granted(SessionId, usize),
}

/// What epoll_wait(2) told of a control connection.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// There are bytes to read (EPOLLIN).
    pub readable: bool,
    /// There is urgent data among them (EPOLLPRI).
    pub urgent: bool,
    /// The client has closed its side, or the connection has broken.
    pub ended: bool,
}

/// What a control connection is always watched for.
const INPUT: Interest = Interest::READABLE.add(Interest::PRIORITY);

/// One client.
#[derive(Debug)]
pub struct Session {
    key: usize,
    control: OwnedFd,
    peer: SocketAddr,
    listener: ListenerId,
    /// Only while there is something.
    rare: Option<Box<Rare>>,
    talk: Talk,
    login: Login,
    reader: line::Reader,
    /// Lines that wait and the unfinished one, between its turns; in them, they are in the worker's buffer.
    queue: Box<[u8]>,
    /// Bytes of replies that the client has not taken yet.
    unsent: Box<[u8]>,
    /// Only while there is one to remember.
    conduit: Option<Box<Conduit>>,
    /// A descriptor that came with an answer, until an order takes it.
    file: Option<OwnedFd>,
    /// The second one, if there were two.
    second: Option<OwnedFd>,
    /// A sum or a copy under way.
    work: Option<Box<errands::Working>>,
    connected: u64,
    since: u64,
    /// The control connection may have more to read.
    more_input: bool,
    /// Urgent data has come since the control connection was last found empty.
    urgent: bool,
    /// The client will send no more.
    input_ended: bool,
    watched_writable: bool,
    waits_for_port: bool,
    in_again: bool,
    closing: bool,
    gone: bool,
    /// AUTH is possible where it has connected, if there is a certificate.
    explicit: bool,
}

impl Session {
    /// A client has connected: greets it.
    pub fn new(key: usize, control: OwnedFd, arrival: Arrival, hub: &mut Hub) -> Self {
        let Arrival { peer, listener, proxied, approach } = arrival;
        let mut session = Session {
            key,
            control,
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
            listener,
            rare: Rare::of(proxied),
            talk: Talk::default(),
            login: Login::None,
            reader: line::Reader::default(),
            queue: Box::default(),
            unsent: Box::default(),
            conduit: None,
            file: None,
            second: None,
            work: None,
            connected: hub.now,
            since: hub.now,
            more_input: false,
            urgent: false,
            input_ended: false,
            watched_writable: false,
            waits_for_port: false,
            in_again: false,
            closing: false,
            gone: false,
            explicit: approach == Approach::Explicit,
        };
        match proxied {
            None => hub.log(Level::Info, Happened::Connect, None, format_args!("peer={}", session.peer)),
            Some((proxy, _)) => {
                hub.log(Level::Info, Happened::Connect, None, format_args!("peer={} proxy={proxy}", session.peer));
            }
        }
        match approach {
            Approach::Implicit => session.secure(hub),
            Approach::Plain | Approach::Explicit => session.greet(hub),
        }
        session.settle(hub);
        if hub.watch(session.control.as_fd(), Source::Control(key), INPUT, false).is_err() {
            session.gone = true;
        }
        session
    }

    /// Whether it is over; [`Session::end`] is to be called.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Where its client connects from.
    pub fn address(&self) -> IpAddr {
        self.peer.ip()
    }

    /// Whether it is this identity's.
    pub fn is(&self, login: SessionId) -> bool {
        matches!(self.login, Login::Asked(id) | Login::Granted(id, _) if id == login)
    }

    /// Whether it uses the broker's link at this place.
    pub fn uses_broker(&self, place: usize) -> bool {
        matches!(self.login, Login::Granted(_, at) if at == place)
    }

    /// Whether it waits for authd.
    pub fn is_asking(&self) -> bool {
        matches!(self.login, Login::Asked(_))
    }

    /// Something happened on the control connection.
    pub fn on_control(&mut self, seen: Seen, hub: &mut Hub) {
        let Seen { readable, urgent, ended } = seen;
        if !self.unsent.is_empty() {
            self.flush(hub);
        }
        self.more_input |= readable || ended;
        self.urgent |= urgent;
        self.read(ended, hub);
        self.drive(None, hub);
    }

    /// Something happened on the data connection or the passive port.
    pub fn on_data(&mut self, hub: &mut Hub) {
        let Some(conduit) = &mut self.conduit else { return };
        let turn = conduit.turn(Place(self.key, self.peer.ip()), hub);
        let event = self.after(turn, hub);
        self.drive(event, hub);
    }

    /// The next turn of a session that had more to do.
    pub fn on_again(&mut self, hub: &mut Hub) {
        self.in_again = false;
        if self.more_input {
            self.read(false, hub);
        }
        match self.conduit.as_mut().filter(|conduit| conduit.is_open()) {
            Some(_) => self.on_data(hub),
            None => self.drive(None, hub),
        }
    }

    /// Something happened elsewhere that concerns it.
    pub fn deliver(&mut self, event: Event<'_>, hub: &mut Hub) {
        self.drive(Some(event), hub);
    }

    /// The monitor granted it.
    pub fn granted(&mut self, login: SessionId, broker: BrokerId, place: usize, required: Require, hub: &mut Hub) {
        self.login = Login::Granted(login, place);
        self.spend_possession();
        self.set_required(required);
        self.drive(Some(Event::Granted(login, broker)), hub);
    }

    /// authd or the monitor refused it; it has no identity any more.
    pub fn refused(&mut self, event: Event<'_>, hub: &mut Hub) {
        if let Login::Asked(login) = std::mem::replace(&mut self.login, Login::None) {
            hub.logins.remove(&login);
        }
        self.drive(Some(event), hub);
    }

    /// Its broker answered.
    pub fn answered(&mut self, answered: Answered, hub: &mut Hub) {
        let (login, number) = (answered.login, answered.staged());
        if let (Login::Granted(_, broker), Some(number)) = (self.login, number) {
            hub.staged = Some(Staged { login, broker, number });
        }
        (self.file, self.second) = (answered.fd, answered.second);
        self.drive(Some(Event::Answer(answered.answer.outcome)), hub);
        // What no order has taken is of no use.
        if let Some(staged) = hub.staged.take() {
            hub.discard(staged);
        }
        (self.file, self.second) = (None, None);
    }

    /// A passive socket is there for it, or none is to be had; gives the socket back if it is not wanted any more.
    pub fn port_here(&mut self, socket: Option<Socket>, hub: &mut Hub) {
        if !std::mem::take(&mut self.waits_for_port) {
            if let Some(socket) = socket {
                hub.pool.release(socket, hub.now);
            }
            return;
        }
        let event = match socket {
            Some(socket) => {
                let port = socket.port();
                let proxy = self.proxy();
                self.conduit.get_or_insert_default().hold(socket, proxy);
                Event::Listening(Some((port, self.local())))
            }
            None => Event::Listening(None),
        };
        self.drive(Some(event), hub);
    }

    /// The monitor's answer about an active connection.
    pub fn connecting(&mut self, fd: Option<OwnedFd>, hub: &mut Hub) {
        let Some(conduit) = &mut self.conduit else { return };
        let turn = conduit.connecting(fd, &self.control, Place(self.key, self.peer.ip()), hub);
        let event = self.after(turn, hub);
        self.drive(event, hub);
    }

    /// When its time limit passes.
    pub fn due(&self, hub: &Hub) -> u64 {
        let settings = &hub.settings;
        let idle = self.talk.idle_secs(settings);
        let stall = limit(self.since, settings.stall_timeout_secs.max(1));
        if self.closing {
            return stall;
        }
        let wait = match self.talk.wait() {
            _ if !self.unsent.is_empty() => stall,
            Wait::Login => limit(self.nobody_since(), settings.login_timeout_secs),
            Wait::Verdict => limit(self.nobody_since(), settings.login_timeout_secs).min(self.since + VERDICT_MS),
            Wait::Command => limit(self.since, idle),
            Wait::CommandWithPort => limit(self.since, idle).min(limit(self.since, settings.data_connect_timeout_secs)),
            Wait::Transfer if !self.is_connected() => limit(self.since, settings.data_connect_timeout_secs),
            Wait::Transfer if self.shakes() => self.since + secured::HANDSHAKE_MS,
            Wait::Answer | Wait::Transfer => limit(self.since, settings.stall_timeout_secs),
            Wait::Nothing => NEVER,
        };
        wait.min(self.over(settings)).min(self.handshake_due())
    }

    /// When it has lasted as long as it may.
    fn over(&self, settings: &FtpSettings) -> u64 {
        limit(self.connected, settings.session_timeout_secs)
    }

    /// Its time limit has passed.
    pub fn expire(&mut self, hub: &mut Hub) {
        if !self.closing && hub.now >= self.over(&hub.settings) {
            return self.drive(Some(Event::Farewell("The session has lasted as long as it may.")), hub);
        }
        if hub.now >= self.handshake_due() {
            return self.handshake_failed("not finished in time", hub);
        }
        if self.closing || !self.unsent.is_empty() {
            let before = self.unsent.len();
            self.flush(hub);
            self.gone |= self.unsent.len() == before;
            return self.drive(None, hub);
        }
        let event = match self.talk.wait() {
            Wait::Login | Wait::Verdict => Event::Expired("Not logged in in time."),
            Wait::CommandWithPort if hub.now < limit(self.since, self.talk.idle_secs(&hub.settings)) => {
                Event::PortExpired
            }
            Wait::Command | Wait::CommandWithPort => Event::Expired("Idle for too long."),
            Wait::Answer => Event::Expired("The file system does not answer."),
            Wait::Transfer => return self.expire_transfer(hub),
            Wait::Nothing => return,
        };
        self.drive(Some(event), hub);
    }

    /// A transfer stands still, or seems to: the kernel tells of room in a socket only when a third of it is free, which
    /// a slow client may take long to reach. So a last attempt decides.
    fn expire_transfer(&mut self, hub: &mut Hub) {
        let Some(conduit) = &mut self.conduit else { return };
        let turn = match conduit.turn(Place(self.key, self.peer.ip()), hub) {
            Turn::Waits if conduit.is_open() && !conduit.is_ready() => {
                conduit.end(How::Unsecured("its handshake is not finished in time"), hub)
            }
            Turn::Waits if conduit.is_open() => conduit.end(How::Stalled, hub),
            Turn::Waits => conduit.end(How::NoConnection, hub),
            turn => turn,
        };
        let event = self.after(turn, hub);
        self.drive(event, hub);
    }

    /// Lets go of everything; the control connection is closed when the session is dropped.
    pub fn end(&mut self, hub: &mut Hub) {
        self.queue.zeroize();
        if self.waits_for_port {
            hub.pool.forget(self.listener, self.key);
        }
        let login = self.login_id();
        self.logout(hub);
        if self.rare.as_ref().is_some_and(|rare| rare.copied) {
            // The monitor holds a copy of the descriptor for now: closing ours would not tell the client.
            let _ = shutdown(&self.control, Shutdown::Write);
        }
        self.unsecure(hub);
        hub.ledger.release(self.peer.ip());
        hub.log(Level::Info, Happened::Disconnect, login, format_args!("peer={}", self.peer));
        if self.more_input {
            drain(&self.control);
        }
    }

    fn login_id(&self) -> Option<SessionId> {
        match self.login {
            Login::None => None,
            Login::Asked(login) | Login::Granted(login, _) => Some(login),
        }
    }

    fn logout(&mut self, hub: &mut Hub) {
        self.cut(hub);
        self.set_required(Require::No);
        // What the monitor still answers is for an identity that is no more.
        if self.conduit.take().is_some_and(|conduit| conduit.asks_monitor()) {
            self.rare.get_or_insert_default().copied = true;
        }
        match std::mem::replace(&mut self.login, Login::None) {
            Login::None => {}
            Login::Asked(login) => hub.tell_forget(login),
            Login::Granted(login, _) => hub.tell_ended(login),
        }
    }

    fn is_connected(&self) -> bool {
        self.conduit.as_ref().is_some_and(|conduit| conduit.is_open())
    }

    /// Whether the handshake on its data connection is under way.
    fn shakes(&self) -> bool {
        self.conduit.as_ref().is_some_and(|conduit| !conduit.is_ready())
    }

    /// Bytes moved, summed or copied so far.
    fn moved(&self) -> u64 {
        let conduit = self.conduit.as_ref().map_or(0, |conduit| conduit.moved());
        self.work.as_ref().map_or(conduit, |work| work.moved)
    }

    fn cut(&mut self, hub: &mut Hub) {
        (self.file, self.second) = (None, None);
        if let Some(work) = self.work.take() {
            hub.helpers.forget(&work.ticket);
        }
        if let Some(conduit) = &mut self.conduit {
            conduit.cut(hub);
            self.conduit.take_if(|conduit| conduit.is_empty());
        }
    }

    /// What a turn of the data connection means to the conversation.
    fn after(&mut self, turn: Turn, hub: &mut Hub) -> Option<Event<'static>> {
        match turn {
            Turn::Waits => None,
            Turn::Moved => {
                self.since = hub.now;
                None
            }
            Turn::More => {
                self.since = hub.now;
                self.again(hub);
                None
            }
            Turn::Ended(how, bytes) => {
                let staged = self.conduit.as_mut().and_then(|conduit| conduit.take_staged());
                self.conduit.take_if(|conduit| conduit.is_empty());
                let how = match staged {
                    Some(staged) if self.has_left() => {
                        hub.discard(staged);
                        How::Reset
                    }
                    _ => how,
                };
                Some(Event::Ended(Ending { bytes, how }))
            }
        }
    }

    /// Whether the client is gone without another word. A client that dies closes both connections, and the end of the data
    /// connection says nothing of an upload's end then.
    fn has_left(&self) -> bool {
        match recv(&self.control, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, got)) => got == 0,
            Err(errno) => errno != Errno::AGAIN,
        }
    }

    fn again(&mut self, hub: &mut Hub) {
        if !std::mem::replace(&mut self.in_again, true) {
            hub.again.push_back(self.key);
        }
    }

    /// A queue so long is small enough to read on.
    fn has_room(queue: &[u8]) -> bool {
        queue.len() < QUEUE_BYTES
    }
}

/// When a limit of so many seconds, counted from `from`, passes; 0 is off.
fn limit(from: u64, secs: u32) -> u64 {
    if secs == 0 { NEVER } else { from.saturating_add(u64::from(secs) * 1000) }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_does_nothing_takes_a_quarter_of_a_kibibyte() {
        assert!(size_of::<Session>() <= 232, "{}", size_of::<Session>());
    }
}
