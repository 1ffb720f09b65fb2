//! One thread a broker that looks at files ahead of a long listing, on a CPU that has nothing else to do.
//!
//! Most of a listing's time is statx(2), a microsecond or less each and ten thousand of them. So the names of a long
//! listing are taken in rounds: the listing's own thread looks at the first of a round and writes all their lines, this
//! one looks at the rest. Whoever asks while it is idle has it; nobody waits for it to become so, and a listing
//! without it is the same but slower. What it looks at is never more than two rounds before what is written.
//! Not here: what lines look like.

use std::{
    io,
    ops::Range,
    os::fd::OwnedFd,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use super::{
    Meta,
    names::{Entry, Names},
};
use crate::resolve::again;

/// Names of a round that the listing's own thread looks at, which has the lines to write as well.
const OURS: usize = 400;

/// Names of a round.
const ROUND: usize = 1000;

/// The thread, for those who list.
#[derive(Debug)]
pub(crate) struct Ahead(SyncSender<Job>);

#[derive(Debug)]
struct Job {
    directory: OwnedFd,
    names: Arc<Names>,
    rounds: SyncSender<Vec<Option<Meta>>>,
}

impl Ahead {
    /// Starts the thread; it ends when this is dropped.
    pub(crate) fn start(stack: usize) -> io::Result<Self> {
        // Without room in between: what is sent has arrived.
        let (ahead, jobs) = sync_channel::<Job>(0);
        let builder = std::thread::Builder::new().name("ahead".to_owned()).stack_size(stack);
        builder.spawn(move || jobs.into_iter().for_each(|job| job.run()))?;
        Ok(Ahead(ahead))
    }

    /// Gives every name to `line` in order, with what it is; names that are gone by now are left out.
    pub(super) fn each<E>(
        &self,
        directory: &OwnedFd,
        names: Names,
        mut line: impl FnMut(Entry<'_>, &Meta) -> Result<(), E>,
    ) -> Result<(), E> {
        let names = Arc::new(names);
        let rounds = if names.len() > ROUND { self.engage(directory, &names) } else { None };
        for start in (0..names.len()).step_by(ROUND) {
            for entry in names.part(ours(start)) {
                if let Some(meta) = Meta::of_entry(directory, entry.name, entry.kind) {
                    line(entry, &meta)?;
                }
            }
            let mut looked = rounds.as_ref().and_then(|rounds| rounds.recv().ok()).into_iter().flatten();
            for entry in names.part(theirs(start)) {
                let meta = looked.next().unwrap_or_else(|| Meta::of_entry(directory, entry.name, entry.kind));
                if let Some(meta) = meta {
                    line(entry, &meta)?;
                }
            }
        }
        Ok(())
    }

    /// `None` while it is busy with another listing, or when the directory cannot be opened once more.
    fn engage(&self, directory: &OwnedFd, names: &Arc<Names>) -> Option<Receiver<Vec<Option<Meta>>>> {
        let directory = again(directory).ok()?;
        let (rounds, looked) = sync_channel(1);
        self.0.try_send(Job { directory, names: Arc::clone(names), rounds }).ok().map(|()| looked)
    }
}

impl Job {
    /// Ends early when the listing did.
    fn run(&self) {
        for start in (0..self.names.len()).step_by(ROUND) {
            let part = self.names.part(theirs(start));
            let looked = part.map(|entry| Meta::of_entry(&self.directory, entry.name, entry.kind)).collect();
            if self.rounds.send(looked).is_err() {
                return;
            }
        }
    }
}

/// The first names of the round that starts here.
fn ours(start: usize) -> Range<usize> {
    start..start + OURS
}

/// The others.
fn theirs(start: usize) -> Range<usize> {
    start + OURS..start + ROUND
}
