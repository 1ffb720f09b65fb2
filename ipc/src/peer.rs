//! One end of a link in an event loop: never waits, keeps a bounded queue, tells the epoll descriptor what it waits for.
//!
//! Reads from: whoever holds the other end (hostile). A peer that does not read its queue is not waited for: its owner ends it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::event::epoll::{self, EventData, EventFlags};

use crate::{Channel, Received, Record, RecvError, SendError};

/// Why a peer is lost that has closed its end, mostly by ending.
pub const CLOSED: &str = "closed its link";

/// Most records that wait for one peer, beside what its socket holds.
const LONGEST_QUEUE: usize = 1024;

/// A link, its queue, and its place in the epoll set.
#[derive(Debug)]
pub struct Peer<Out, In> {
    channel: Channel<Out, In>,
    queue: VecDeque<(Out, Vec<OwnedFd>)>,
    epoll: Rc<OwnedFd>,
    id: u32,
    open: bool,
    waits_to_write: bool,
}

impl<Out: Record, In: Record> Peer<Out, In> {
    /// Takes the link over; its events carry `id`.
    pub fn new(mut channel: Channel<Out, In>, epoll: &Rc<OwnedFd>, id: u32) -> io::Result<Self> {
        channel.set_nonblocking(true);
        epoll::add(&**epoll, &channel, EventData::new_u64(id.into()), EventFlags::IN)?;
        Ok(Peer { channel, queue: VecDeque::new(), epoll: Rc::clone(epoll), id, open: true, waits_to_write: false })
    }

    /// Sends a record, or queues it behind others. The error says why the peer is lost; nothing more is sent to it.
    pub fn send(&mut self, record: Out, fds: Vec<OwnedFd>) -> Result<(), String> {
        if !self.open {
            return Ok(());
        }
        if self.queue.len() >= LONGEST_QUEUE {
            return Err("does not read its link".to_owned());
        }
        self.queue.push_back((record, fds));
        if self.queue.len() == 1 { self.flush() } else { Ok(()) }
    }

    /// Sends what waits, as far as the socket takes it.
    pub fn flush(&mut self) -> Result<(), String> {
        while let Some((record, fds)) = self.queue.front() {
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            match self.channel.send(record, &fds) {
                Ok(()) => drop(self.queue.pop_front()),
                Err(SendError::WouldBlock) => return self.wait_to_write(true),
                // Its last word may be there still, and its end is heard behind that.
                Err(SendError::Closed) => self.queue.clear(),
                Err(SendError::Contract(breach)) => return Err(format!("was to be sent a bad record: {breach}")),
                Err(SendError::Io(e)) => return Err(format!("sendmsg: {e}")),
            }
        }
        self.wait_to_write(false)
    }

    /// Receives a record; `None` when there is none now. The error says why the peer is lost.
    pub fn recv(&mut self) -> Result<Option<Received<In>>, String> {
        if !self.open {
            return Ok(None);
        }
        match self.channel.recv() {
            Ok(received) => Ok(Some(received)),
            Err(RecvError::WouldBlock) => Ok(None),
            Err(RecvError::Closed) => Err(CLOSED.to_owned()),
            Err(RecvError::Breach(breach)) => Err(format!("broke the contract of its link: {breach}")),
            Err(RecvError::Io(e)) => Err(format!("recvmsg: {e}")),
        }
    }

    /// Whether records wait for it to read.
    pub fn behind(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Neither sends nor receives any more.
    pub fn close(&mut self) {
        if self.open {
            self.open = false;
            self.queue.clear();
            let _ = epoll::delete(&*self.epoll, &self.channel);
        }
    }

    fn wait_to_write(&mut self, on: bool) -> Result<(), String> {
        if self.waits_to_write == on {
            return Ok(());
        }
        self.waits_to_write = on;
        let flags = if on { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        let changed = epoll::modify(&*self.epoll, &self.channel, EventData::new_u64(self.id.into()), flags);
        changed.map_err(|e| format!("epoll_ctl: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use crate::link::monitor_broker::{FromBroker, ToBroker};
    use crate::types::WorkerId;
    use rustix::event::epoll::CreateFlags;

    use super::*;

    fn pair() -> (Peer<ToBroker, FromBroker>, Channel<FromBroker, ToBroker>) {
        let epoll = Rc::new(epoll::create(CreateFlags::CLOEXEC).unwrap());
        let (ours, theirs) = Channel::pair().unwrap();
        (Peer::new(ours, &epoll, 1).unwrap(), Channel::from_fd(theirs).unwrap())
    }

    #[test]
    fn a_peer_that_does_not_read_is_given_up_after_a_bounded_queue() {
        let (mut peer, _theirs) = pair();
        let sent =
            (0..100_000).take_while(|n| peer.send(ToBroker::DropWorker(WorkerId(*n)), Vec::new()).is_ok()).count();
        assert!(sent > LONGEST_QUEUE && sent < 100_000);
        assert_eq!(peer.queue.len(), LONGEST_QUEUE);
    }

    #[test]
    fn what_was_queued_arrives_in_order_once_the_peer_reads() {
        let (mut peer, mut theirs) = pair();
        let mut sent = 0;
        while !peer.behind() {
            peer.send(ToBroker::DropWorker(WorkerId(sent)), Vec::new()).unwrap();
            sent += 1;
        }
        for n in 0..sent {
            assert!(matches!(theirs.recv().unwrap().record, ToBroker::DropWorker(WorkerId(got)) if got == n));
            peer.flush().unwrap();
        }
        assert!(!peer.behind());
    }

    #[test]
    fn a_last_word_is_heard_though_something_is_sent_to_the_dead() {
        let (mut peer, mut theirs) = pair();
        theirs.send(&FromBroker::WorkerBreach(WorkerId(7)), &[]).unwrap();
        drop(theirs);
        assert!(peer.send(ToBroker::Stop, Vec::new()).is_ok() && !peer.behind());
        assert!(matches!(peer.recv().unwrap().unwrap().record, FromBroker::WorkerBreach(WorkerId(7))));
        assert_eq!(peer.recv().unwrap_err(), CLOSED);
    }

    #[test]
    fn a_peer_that_is_gone_is_told_from_one_that_is_silent() {
        let (mut peer, theirs) = pair();
        assert!(peer.recv().unwrap().is_none());
        drop(theirs);
        assert_eq!(peer.recv().unwrap_err(), CLOSED);
        peer.close();
        assert!(peer.recv().unwrap().is_none() && peer.send(ToBroker::Stop, Vec::new()).is_ok());
    }
}
