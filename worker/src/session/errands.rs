//! What helpers do for a session, and what its broker keeps for it: errands under way, uploads under hidden names.

use super::{Back, Ending, Errno, Event, Hub, Number, Place, Session, Ticket};
use crate::{
    ftp::{data::How, state::Worked},
    helpers::Errand,
    transfer::job::Job,
};

/// A sum or a copy that a helper works on.
#[derive(Debug)]
pub(super) struct Working {
    pub ticket: Ticket,
    /// Bytes done so far.
    pub moved: u64,
    /// It writes to a file.
    pub writes: bool,
}

impl Session {
    /// A helper has done an errand; what is not for this session comes back.
    pub fn came_back(&mut self, number: Number, back: Back, hub: &mut Hub) -> Option<Back> {
        let event = match back {
            Back::Turn(transfer, step) => {
                let place = Place(self.key, self.peer.ip());
                let Some(conduit) = &mut self.conduit else { return Some(Back::Turn(transfer, step)) };
                match conduit.came_back((number, transfer, step), place, hub) {
                    Ok(turn) => self.after(turn, hub),
                    Err(transfer) => return Some(Back::Turn(transfer, step)),
                }
            }
            Back::Work(job, result) => {
                let Some(work) = self.work.take_if(|work| work.ticket.is(number)) else {
                    return Some(Back::Work(job, result));
                };
                let aborted = || work.ticket.is_given_up().then_some(Err(How::Aborted));
                self.after_work(job, result.or_else(aborted), hub)
            }
        };
        self.drive(event, hub);
        None
    }

    /// Has a helper do the next share of it.
    pub(super) fn work_on(&mut self, job: Box<Job>, hub: &mut Hub) -> Option<Event<'static>> {
        self.since = hub.now;
        let (moved, writes) = (job.moved(), matches!(*job, Job::Copy(_)));
        match hub.helpers.give(self.key, Errand::Work(job)) {
            Ok(ticket) => {
                self.work = Some(Box::new(Working { ticket, moved, writes }));
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

    /// ABOR. What writes to a file is waited for, so that what the client sends next is not written over.
    pub(super) fn abort(&mut self, hub: &mut Hub) -> Option<Event<'static>> {
        match (self.work.take(), &mut self.conduit) {
            (Some(work), _) if work.writes => {
                work.ticket.give_up();
                self.work = Some(work);
                None
            }
            (Some(work), _) => {
                hub.helpers.forget(&work.ticket);
                Some(Event::Worked(Err(How::Aborted)))
            }
            (None, Some(conduit)) => {
                let turn = conduit.abort(hub);
                self.after(turn, hub)
            }
            (None, None) => Some(Event::Ended(Ending { bytes: 0, how: How::Aborted })),
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
