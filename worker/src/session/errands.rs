//! What helpers do for a session, and what its broker keeps for it: errands under way, uploads under hidden names.

use super::{Back, Errno, Event, Hub, Place, Session, Ticket};
use crate::{
    ftp::{data::How, state::Worked},
    helpers::Errand,
    transfer::job::Job,
};

/// A sum or a copy that a helper works on.
#[derive(Debug)]
pub(super) struct Working {
    ticket: Ticket,
    /// Bytes done so far.
    pub moved: u64,
}

impl Session {
    /// A helper has done an errand; what is not for this session comes back.
    pub fn came_back(&mut self, ticket: Ticket, back: Back, hub: &mut Hub) -> Option<(Ticket, Back)> {
        let event = match back {
            Back::Turn(transfer, step) => {
                let place = Place(self.key, self.peer.ip());
                let Some(conduit) = &mut self.conduit else { return Some((ticket, Back::Turn(transfer, step))) };
                match conduit.came_back((ticket, transfer, step), place, hub) {
                    Ok(turn) => self.after(turn, hub),
                    Err(transfer) => return Some((ticket, Back::Turn(transfer, step))),
                }
            }
            Back::Work(job, result) => {
                if self.work.take_if(|work| work.ticket == ticket).is_none() {
                    return Some((ticket, Back::Work(job, result)));
                }
                self.after_work(job, result, hub)
            }
        };
        self.drive(event, hub);
        None
    }

    /// Has a helper do the next share of it.
    pub(super) fn work_on(&mut self, job: Box<Job>, hub: &mut Hub) -> Option<Event<'static>> {
        self.since = hub.now;
        let moved = job.moved();
        match hub.helpers.give(self.key, Errand::Work(job)) {
            Ok(ticket) => {
                self.work = Some(Box::new(Working { ticket, moved }));
                None
            }
            Err(_) => Some(Event::Worked(Err(How::File(Errno::AGAIN.raw_os_error())))),
        }
    }

    /// A helper has done a share.
    fn after_work(&mut self, job: Box<Job>, result: Option<Worked>, hub: &mut Hub) -> Option<Event<'static>> {
        match result {
            None => self.work_on(job, hub),
            Some(result) => {
                hub.helpers.close(job.into_files());
                Some(Event::Worked(result))
            }
        }
    }

    /// Its broker has died, and removed what was staged or left it behind.
    pub fn broker_lost(&mut self, hub: &mut Hub) {
        if let Some(conduit) = &mut self.conduit {
            conduit.broker_lost();
        }
        self.deliver(Event::BrokerLost, hub);
    }
}
