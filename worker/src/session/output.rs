//! From replies to the control connection.

use std::os::fd::AsFd;

use mio::Interest;
use rustix::net::{SendFlags, send};

use super::{Errno, Hub, INPUT, Session, Source};

impl Session {
    /// Sends what is to be sent, and takes note of what is waited for. Every turn ends here.
    pub(super) fn settle(&mut self, hub: &mut Hub) {
        if !hub.out.bytes.is_empty() || !self.unsent.is_empty() || (self.closing && self.owes_close_notify()) {
            self.flush(hub);
        }
        hub.late.clear();
        if self.closing && self.unsent.is_empty() {
            self.gone = true;
        }
        hub.due_at(self.due(hub));
    }

    pub(super) fn flush(&mut self, hub: &mut Hub) {
        let mut pending = Vec::from(std::mem::take(&mut self.unsent));
        let late = !pending.is_empty();
        if self.is_secured() {
            self.seal(&mut pending, hub);
        } else if late {
            pending.append(&mut hub.out.bytes);
        } else {
            std::mem::swap(&mut pending, &mut hub.out.bytes);
        }
        let sent = match rustix::io::retry_on_intr(|| send(&self.control, &pending, SendFlags::NOSIGNAL)) {
            Ok(sent) => sent,
            Err(Errno::AGAIN) => 0,
            Err(_) => {
                self.gone = true;
                return;
            }
        };
        if sent > 0 || !late {
            self.since = hub.now;
        }
        self.unsent = pending.get(sent..).unwrap_or_default().into();
        // The room is used again.
        pending.clear();
        hub.out.bytes = pending;
        self.watch_for_room(hub);
    }

    /// Is told of room in the socket while something waits for it.
    fn watch_for_room(&mut self, hub: &mut Hub) {
        let writable = !self.unsent.is_empty();
        if writable != self.watched_writable {
            let interest = if writable { INPUT | Interest::WRITABLE } else { INPUT };
            if hub.watch(self.control.as_fd(), Source::Control(self.key), interest, true).is_err() {
                self.gone = true;
            }
            self.watched_writable = writable;
        }
    }
}
