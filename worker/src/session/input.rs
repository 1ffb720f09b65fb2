//! From the control connection to steps of the conversation.

use rustix::net::{RecvFlags, recv};

use crate::ftp::Context;

use super::{Errno, Event, Hub, LINES_PER_TURN, OUT_BYTES, QUEUE_BYTES, Session, Zeroize, line};

/// Bytes read from one control connection in one turn, about: a line without end must not hold up the others.
const READ_PER_TURN: usize = 64 << 10;

impl Session {
    /// Reads what is there into the line queue, as far as there is room.
    pub(super) fn read(&mut self, ended: bool, hub: &mut Hub) {
        self.borrow_queue(hub);
        if self.is_secured() {
            return self.read_secured(ended, READ_PER_TURN, hub);
        }
        let mut left = READ_PER_TURN;
        while self.more_input && !self.input_ended && !self.closing {
            if left == 0 || !Self::has_room(&hub.queue) {
                break;
            }
            let room = (QUEUE_BYTES - hub.queue.len()).min(hub.input.len());
            let Some(buffer) = hub.input.get_mut(..room) else { break };
            match recv(&self.control, &mut *buffer, RecvFlags::empty()) {
                Ok((_, 0)) => (self.input_ended, self.more_input) = (true, false),
                Ok((_, got)) => {
                    let raw = buffer.get_mut(..got).unwrap_or_default();
                    self.reader.feed(raw, &mut hub.queue);
                    raw.zeroize();
                    left = left.saturating_sub(got);
                    // A short read has emptied the socket, unless the end is behind it, or it stopped at urgent data,
                    // which clients send with ABOR (RFC 959 4.1.3): what lies behind that is told of no more.
                    self.more_input = got == room || ended || self.urgent;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => (self.more_input, self.urgent) = (false, false),
                Err(_) => (self.input_ended, self.more_input, self.gone) = (true, false, true),
            }
        }
    }

    /// Steps of the conversation, until it has to wait. Ends the turn.
    pub(super) fn drive<'e>(&mut self, first: Option<Event<'e>>, hub: &mut Hub) {
        self.borrow_queue(hub);
        let mut queue = std::mem::take(&mut hub.queue);
        let mut rest = queue.as_slice();
        let mut event = first;
        let mut lines = 0;
        loop {
            if let Some(next) = event.take() {
                self.since = hub.now;
                self.step(next, hub);
                event = self.obey(hub);
                continue;
            }
            if self.closing || self.gone {
                break;
            }
            if self.talk.transferring() {
                event = self.during_transfer(&mut rest);
                if event.is_some() {
                    continue;
                }
                break;
            }
            if !self.talk.takes_lines() || !self.unsent.is_empty() {
                break;
            }
            let Some((line, behind)) = line::next(rest) else { break };
            if lines == LINES_PER_TURN || hub.out.bytes.len() > OUT_BYTES {
                self.again(hub);
                break;
            }
            lines += 1;
            rest = behind;
            self.since = hub.now;
            let secured = self.is_secured();
            self.step(Event::Line(line), hub);
            event = self.obey(hub);
            if self.is_secured() != secured {
                // What was sent in clear behind AUTH was perhaps not the client's.
                rest = &[];
            }
        }
        self.queue = rest.into();
        // What was used, not the whole room (as `Vec::zeroize` would): this runs for every line.
        queue.as_mut_slice().zeroize();
        queue.clear();
        hub.queue = queue;
        self.end_of_input(hub);
        self.settle(hub);
    }

    /// What the lines that wait mean to a running transfer: an ABOR cuts it now, a STAT that is next is answered now,
    /// all others wait for its end (RFC 959 4.1.3).
    fn during_transfer(&mut self, rest: &mut &[u8]) -> Option<Event<'static>> {
        let moved = self.moved();
        let (next, behind) = line::next(rest)?;
        if line::holds(rest, b"ABOR") {
            return Some(Event::Abort);
        }
        line::is(next, b"STAT").then(|| {
            *rest = behind;
            Event::Status { moved }
        })
    }

    /// The client has closed its side: what it said before is answered, a transfer goes on only for a client that has
    /// said QUIT (RFC 959 4.1.1: a connection that breaks is an abort).
    fn end_of_input(&mut self, hub: &mut Hub) {
        if self.more_input && Self::has_room(&self.queue) && !self.gone && !self.closing {
            self.again(hub);
        }
        if !self.input_ended || self.closing {
            return;
        }
        let answered = self.talk.takes_lines() && line::next(&self.queue).is_none();
        let broken = self.talk.transferring() && !line::holds(&self.queue, b"QUIT");
        if answered || broken {
            self.closing = true;
        }
    }

    fn step(&mut self, event: Event<'_>, hub: &mut Hub) {
        let (peer, proxied, shield) = (self.peer.ip(), self.proxy().is_some(), self.shield(hub));
        let cx = Context { settings: &hub.settings, peer, proxied, shield, now: hub.now };
        self.talk.on(event, &cx, &mut hub.out);
    }

    /// Puts the lines that wait into the worker's buffer for this turn: it is large enough, so no password is left behind
    /// in memory by growing.
    fn borrow_queue(&mut self, hub: &mut Hub) {
        let mut own = std::mem::take(&mut self.queue);
        hub.queue.extend_from_slice(&own);
        own.zeroize();
    }
}
