//! The control connection under TLS: its handshake, records to lines, replies to records.
//!
//! What is here exists for sessions under TLS alone; others are not asked for more than a pointer.

use child_ipc::{
    link::{
        settings::{Require, Resumption},
        worker_authd::Possession,
    },
    types::SessionId,
};
use rustix::net::{RecvFlags, recv};

use super::{Errno, Happened, Hub, Level, Session, Zeroize, line};
use crate::{
    ftp::{
        Context, Shield,
        data::{How, Move},
    },
    tls::{Connection, LONGEST_RECORD, Outgoing, Owner, Standing, Stream, connection::why},
};

/// How long a handshake may take, milliseconds.
pub(super) const HANDSHAKE_MS: u64 = 10_000;
/// Room for records of one turn: an unfinished one, and what comes behind it.
const ROOM: usize = LONGEST_RECORD + super::QUEUE_BYTES;

/// TLS of a control connection.
#[derive(Debug)]
pub(super) struct Secured {
    connection: Connection,
    owner: Owner,
    /// PBSZ and PROT.
    shield: Shield,
    /// `tls_required` for its address, of when its handshake began: no reload makes it weaker.
    required: Require,
    /// The same of the account it is logged in to.
    by_account: Require,
    /// `data_resumption` for its address, of when its handshake began: its tickets, or none, are of then.
    resumption: Resumption,
    /// Bytes of records that are not opened yet; fewer than [`ROOM`].
    held: Box<[u8]>,
    /// Whole records may be among them: the lines so far have to be answered first.
    backlog: bool,
    /// When the handshake began, until it is over.
    began: Option<u64>,
    /// The certificate the client has shown, until it has logged in once.
    possession: Option<Box<Possession>>,
    /// The client is greeted when it is over.
    greets: bool,
    /// Its tickets, until something is said: some clients (curl 7.88) take a record without words for the end.
    tickets: Vec<u8>,
}

impl Session {
    /// Whether the control connection is under TLS, or about to be.
    pub(super) fn is_secured(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.tls.is_some())
    }

    fn secured(&self) -> Option<&Secured> {
        self.rare.as_ref()?.tls.as_deref()
    }

    /// What is under TLS.
    pub(super) fn shield(&self, hub: &Hub) -> Shield {
        // After a reload without certificates nobody begins with TLS any more, and whoever has goes on.
        match (self.secured(), hub.tls.as_ref().filter(|_| hub.settings.tls.is_some())) {
            (Some(tls), _) => {
                Shield { certified: tls.possession.is_some(), required: tls.required.max(tls.by_account), ..tls.shield }
            }
            (None, Some(tls)) => Shield { possible: self.explicit, busy: !tls.has_room(), ..Shield::default() },
            (None, None) => Shield::default(),
        }
    }

    /// PBSZ or PROT was said.
    pub(super) fn set_shield(&mut self, shield: Shield) {
        if let Some(tls) = self.rare.as_mut().and_then(|rare| rare.tls.as_mut()) {
            tls.shield = shield;
        }
    }

    /// Whether it waits for the grant of this identity, and may be an account's that demands this.
    pub fn awaits(&self, login: SessionId, required: Require) -> bool {
        self.is(login) && self.is_asking() && (required == Require::No || self.is_secured())
    }

    /// What the account demands that it is logged in to.
    pub(super) fn set_required(&mut self, by_account: Require) {
        if let Some(tls) = self.rare.as_mut().and_then(|rare| rare.tls.as_mut()) {
            tls.by_account = by_account;
        }
    }

    /// The certificate the client has shown.
    pub(super) fn possession(&self) -> Option<Box<Possession>> {
        self.secured().and_then(|tls| tls.possession.clone())
    }

    /// The client has logged in: authd takes its certificate no more.
    pub(super) fn spend_possession(&mut self) {
        if let Some(tls) = self.rare.as_mut().and_then(|rare| rare.tls.as_mut()) {
            tls.possession = None;
        }
    }

    /// The greeting (RFC 959 5.4).
    pub(super) fn greet(&mut self, hub: &mut Hub) {
        let (peer, proxied, shield) = (self.peer.ip(), self.proxy().is_some(), self.shield(hub));
        let cx = Context { settings: &hub.settings, peer, proxied, shield, now: hub.now };
        self.talk.greet(&cx, &mut hub.out);
    }

    /// What is said so far goes out in clear; then the client begins its handshake. What it has sent already was not
    /// protected by anything, and is dropped.
    pub(super) fn secure(&mut self, hub: &mut Hub) {
        let greets = hub.out.bytes.is_empty();
        if !greets {
            self.flush(hub);
        }
        let asks = hub.settings.tls.as_ref().is_some_and(|tls| tls.asks_certificates);
        let accepted = hub.tls.as_mut().filter(|tls| tls.has_room()).map(|tls| tls.accept(asks));
        let Some(Ok((connection, owner))) = accepted else {
            return self.handshake_failed("not possible now", hub);
        };
        self.reader = line::Reader::default();
        let shield = Shield { possible: true, on: true, ..Shield::default() };
        let address = self.peer.ip();
        let tls = Secured {
            connection,
            owner,
            shield,
            required: hub.settings.require(address),
            by_account: Require::No,
            resumption: hub.settings.resumption(address),
            held: Box::default(),
            backlog: false,
            began: Some(hub.now),
            possession: None,
            greets,
            tickets: Vec::new(),
        };
        self.rare.get_or_insert_default().tls = Some(Box::new(tls));
        hub.due_at(hub.now + HANDSHAKE_MS);
    }

    /// Reads records into the line queue, as far as there is room.
    pub(super) fn read_secured(&mut self, ended: bool, most: usize, hub: &mut Hub) {
        let Some(mut tls) = self.rare.as_mut().and_then(|rare| rare.tls.take()) else { return };
        let mut records = std::mem::take(&mut hub.records);
        records.resize(ROOM, 0);
        let (mut left, mut out, shakes) = (most, Outgoing::default(), tls.connection.is_handshaking());
        while (self.more_input || tls.backlog) && !self.input_ended && !self.closing {
            if left == 0 || !Self::has_room(&hub.queue) {
                break;
            }
            if tls.held.len() >= records.len() && !tls.backlog {
                self.tls_failed(&mut tls, "a message in more pieces than there is room for", hub);
                break;
            }
            let Some(filled) = self.receive_records(&mut tls, ended, &mut records) else { break };
            left = left.saturating_sub(filled);
            let incoming = records.get_mut(..filled).unwrap_or_default();
            let (reader, queue) = (&mut self.reader, &mut hub.queue);
            let (taken, standing) = tls.connection.take(incoming, &mut out, true, |plain| {
                reader.feed(plain, queue);
                Self::has_room(queue)
            });
            tls.held = incoming.get(taken..).unwrap_or_default().into();
            tls.backlog = !tls.held.is_empty() && !Self::has_room(&hub.queue);
            // There are passwords in it.
            incoming.zeroize();
            match standing {
                Ok(Standing::Handshake) => {}
                Ok(Standing::Open) => self.handshake_done(&mut tls, hub),
                Ok(Standing::Ended) => {
                    self.handshake_done(&mut tls, hub);
                    (self.input_ended, self.more_input, tls.backlog) = (true, false, false);
                }
                Err(error) => self.tls_failed(&mut tls, why(&error), hub),
            }
        }
        if shakes && !tls.connection.is_handshaking() && tls.connection.is_newest() {
            tls.tickets = out.filled().to_vec();
        } else if !out.filled().is_empty() {
            self.unsent = [&self.unsent, std::mem::take(&mut tls.tickets).as_slice()].concat().into();
            self.unsent = [&self.unsent, out.filled()].concat().into();
        }
        self.more_input |= tls.backlog;
        hub.records = records;
        if let Some(rare) = &mut self.rare {
            rare.tls = Some(tls);
        }
    }

    /// What is held, and more of the socket behind it; how much that is in all.
    fn receive_records(&mut self, tls: &mut Secured, ended: bool, records: &mut [u8]) -> Option<usize> {
        let (front, room) = records.split_at_mut_checked(tls.held.len())?;
        front.copy_from_slice(&tls.held);
        if tls.backlog {
            return Some(front.len());
        }
        loop {
            match recv(&self.control, &mut *room, RecvFlags::empty()) {
                Ok((_, 0)) => (self.input_ended, self.more_input) = (true, false),
                Ok((_, got)) => {
                    // As in input.rs.
                    self.more_input = got == room.len() || ended || self.urgent;
                    return Some(front.len() + got);
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => (self.more_input, self.urgent) = (false, false),
                Err(_) => (self.input_ended, self.more_input, self.gone) = (true, false, true),
            }
            return None;
        }
    }

    fn handshake_done(&mut self, tls: &mut Secured, hub: &mut Hub) {
        if tls.began.is_none() || tls.connection.is_handshaking() {
            return;
        }
        self.settle_handshake(tls, hub);
        tls.possession = tls.connection.take_possession();
        let (version, suite) = tls.connection.names();
        hub.log(Level::Debug, Happened::Connect, None, format_args!("tls={version} suite={suite} peer={}", self.peer));
        self.since = hub.now;
        if std::mem::take(&mut tls.greets) {
            self.greet(hub);
        }
    }

    fn tls_failed(&mut self, tls: &mut Secured, why: &str, hub: &mut Hub) {
        self.settle_handshake(tls, hub);
        hub.log(
            Level::Info,
            Happened::Refused,
            self.login_id(),
            format_args!("reason=\"TLS: {why}\" peer={}", self.peer),
        );
        (self.closing, self.more_input, tls.backlog) = (true, false, false);
    }

    fn settle_handshake(&mut self, tls: &mut Secured, hub: &mut Hub) {
        if let (Some(_), Some(all)) = (tls.began.take(), &mut hub.tls) {
            all.settled();
        }
    }

    /// There is to be no handshake, or it takes too long.
    pub(super) fn handshake_failed(&mut self, why: &str, hub: &mut Hub) {
        hub.log(Level::Info, Happened::Refused, None, format_args!("reason=\"TLS: {why}\" peer={}", self.peer));
        self.gone = true;
    }

    /// When the handshake has taken too long.
    pub(super) fn handshake_due(&self) -> u64 {
        self.secured().and_then(|tls| tls.began).map_or(super::NEVER, |began| began + HANDSHAKE_MS)
    }

    /// Replies to records, behind what waits; at the end close_notify. What is said during a handshake nobody could read.
    pub(super) fn seal(&mut self, pending: &mut Vec<u8>, hub: &mut Hub) {
        let closing = self.closing;
        let Some(tls) = self.rare.as_mut().and_then(|rare| rare.tls.as_mut()) else { return };
        let mut out = Outgoing::default();
        out.push(&std::mem::take(&mut tls.tickets));
        if !hub.out.bytes.is_empty() && !tls.connection.seal(&hub.out.bytes, &mut out) {
            self.closing = true;
        }
        hub.out.bytes.clear();
        if closing {
            tls.connection.close(&mut out);
        }
        pending.extend_from_slice(out.filled());
    }

    /// Whether the client is still to be told that nothing more comes.
    pub(super) fn owes_close_notify(&self) -> bool {
        self.secured().is_some_and(|tls| !tls.connection.is_closed())
    }

    /// It ends, perhaps in its handshake.
    pub(super) fn unsecure(&mut self, hub: &mut Hub) {
        if let Some(mut tls) = self.rare.as_mut().and_then(|rare| rare.tls.take()) {
            self.settle_handshake(&mut tls, hub);
        }
    }

    /// What a data connection needs for PROT P, for this transfer.
    pub(super) fn stream(&self, order: Move, hub: &Hub) -> Result<Option<Box<Stream>>, How> {
        let Some(secured) = self.secured().filter(|secured| secured.shield.private) else { return Ok(None) };
        let receives = matches!(order, Move::Receive { .. });
        let stream = hub.tls.as_ref().map(|tls| tls.secure(secured.owner, receives, secured.resumption));
        match stream {
            Some(Ok(stream)) => Ok(Some(Box::new(stream))),
            _ => Err(How::Unsecured("it is not possible now")),
        }
    }
}
