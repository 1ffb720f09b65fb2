//! Orders of the conversation to the loop's means.

use child_ipc::{
    link::worker_authd::Check,
    types::{BrokerId, Secret, SessionId, UserName},
};
use rustix::io::pread;

use super::{Errno, Event, Hub, Login, Place, Session};
use crate::{
    conduit::Turn,
    ftp::{
        Order,
        data::{Ending, How, Move, Work},
    },
    transfer::{Transfer, job::Job},
};

/// The longest listing that STAT tells over the control connection.
const LONGEST_STAT: u64 = 256 << 10;

impl Session {
    /// Obeys the orders of one step. At most one of them is answered at once.
    pub(super) fn obey(&mut self, hub: &mut Hub) -> Option<Event<'static>> {
        let mut event = None;
        let mut orders = std::mem::take(&mut hub.out.orders);
        for order in orders.drain(..) {
            let answer = self.obey_one(order, hub);
            event = event.or(answer);
        }
        // Nothing was ordered meanwhile; the room is used again.
        hub.out.orders = orders;
        event
    }

    fn obey_one(&mut self, order: Order, hub: &mut Hub) -> Option<Event<'static>> {
        let place = Place(self.key, self.peer.ip());
        match order {
            Order::Check(user, password) => self.check(user, password, hub),
            Order::Host(host) => {
                if host.is_some() || self.rare.is_some() {
                    self.rare.get_or_insert_default().host = host;
                }
                None
            }
            Order::Secure => {
                self.secure(hub);
                None
            }
            Order::Shield(shield) => {
                self.set_shield(shield);
                None
            }
            Order::Logout => {
                // A REIN that ends no login brings no more time for one.
                if matches!(self.login, Login::Granted(..)) {
                    self.rare.get_or_insert_default().logged_out = Some(hub.now);
                }
                self.logout(hub);
                None
            }
            Order::Ask(op) => {
                self.since = hub.now;
                let Login::Granted(login, broker) = self.login else { return Some(Event::BrokerLost) };
                if hub.ask_broker(broker, self.key, login, op) { None } else { Some(Event::BrokerLost) }
            }
            Order::Listen { with_address } => self.listen(with_address, hub),
            Order::Unlisten | Order::Cut => {
                self.cut(hub);
                None
            }
            Order::Abort => self.abort(hub),
            Order::Open(via) => {
                if let Login::Granted(login, _) = self.login {
                    self.conduit.get_or_insert_default().open(via, login, &self.control, place, hub);
                }
                None
            }
            Order::Move(order) => self.begin(order, hub),
            Order::Work(work) => self.begin_work(work, hub),
            Order::ReadListing(bytes) => Some(Event::Listing(self.read_listing(bytes))),
            Order::Log(level, event, text) => {
                hub.log(level, event, self.login_id(), format_args!("peer={} {text}", self.peer));
                None
            }
            Order::Close => {
                self.cut(hub);
                self.closing = true;
                None
            }
        }
    }

    fn check(&mut self, user: UserName, password: Option<Secret>, hub: &mut Hub) -> Option<Event<'static>> {
        let host = self.rare.as_ref().and_then(|rare| rare.host.clone());
        let (source, possession) = (self.peer.ip(), self.possession());
        // Named as nobody's here.
        let (session, secured) = (SessionId(0), self.is_secured());
        let check = Check { session, user, password, source, host, secured, possession };
        match hub.ask_check(self.key, check) {
            Some(login) => {
                self.login = Login::Asked(login);
                None
            }
            None => Some(Event::NoAuthd),
        }
    }

    fn listen(&mut self, with_address: bool, hub: &mut Hub) -> Option<Event<'static>> {
        let proxy = self.proxy();
        let conduit = self.conduit.get_or_insert_default();
        let mut port = conduit.port();
        if port.is_none()
            && let Some(socket) = hub.pool.take(self.listener)
        {
            port = Some(socket.port());
            conduit.hold(socket, proxy);
        }
        // The client connects before it sends the next line: that takes longer.
        hub.brisk &= port.is_none();
        match port {
            Some(port) => Some(Event::Listening(Some((port, with_address.then(|| self.local()).flatten())))),
            None => {
                self.waits_for_port = true;
                if let Some(wanted) = hub.pool.wait(self.listener, self.key) {
                    hub.ask_passive_pool(self.listener, wanted);
                }
                None
            }
        }
    }

    fn begin(&mut self, order: Move, hub: &mut Hub) -> Option<Event<'static>> {
        self.since = hub.now;
        let place = Place(self.key, self.peer.ip());
        let stream = match self.stream(order, hub) {
            Ok(stream) => stream,
            Err(how) => {
                self.cut(hub);
                return Some(Event::Ended(Ending { bytes: 0, how }));
            }
        };
        let turn = match (self.file.take(), self.conduit.take()) {
            (Some(file), Some(mut conduit)) => {
                // The client reads or sends when it has our 150: no waiting for what is done next.
                self.flush(hub);
                let transfer = Transfer::new(file, order, stream, self.broker(hub), &hub.tools).wary(self.is_secured());
                let staged = hub.staged.take();
                let turn = conduit.begin(transfer, staged, place, hub);
                self.conduit = Some(conduit);
                turn
            }
            // A broker that opens a file without passing it breaks its contract, which `ipc` has checked.
            _ => Turn::Ended(How::NoConnection, 0),
        };
        self.after(turn, hub)
    }

    /// The broker that has opened its files. When that is gone, or without a login, it is nobody's.
    fn broker(&self, hub: &Hub) -> BrokerId {
        match self.login {
            Login::Granted(_, place) => hub.brokers.id(place).unwrap_or(BrokerId(u32::MAX)),
            _ => BrokerId(u32::MAX),
        }
    }

    /// Takes the files of a sum or a copy, and has a helper begin.
    fn begin_work(&mut self, work: Work, hub: &mut Hub) -> Option<Event<'static>> {
        let broker = self.broker(hub);
        match self.file.take().and_then(|file| Job::new(work, file, self.second.take(), broker)) {
            Some(job) => self.work_on(Box::new(job), hub),
            // A broker that answers without descriptors breaks its contract, which `ipc` has checked.
            None => Some(Event::Worked(Err(How::File(Errno::BADF.raw_os_error())))),
        }
    }

    fn read_listing(&mut self, bytes: u64) -> Option<Vec<u8>> {
        let file = self.file.take()?;
        if bytes > LONGEST_STAT {
            return None;
        }
        let mut text = vec![0; usize::try_from(bytes).ok()?];
        let mut filled = 0;
        while let Some(room) = text.get_mut(filled..).filter(|room| !room.is_empty()) {
            match pread(&file, room, filled as u64) {
                Ok(0) => break,
                Ok(got) => filled += got,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        text.truncate(filled);
        Some(text)
    }
}
