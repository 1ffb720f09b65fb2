//! Logged in, nothing under way: what the session has set, and how it asks.

use child_ipc::{
    link::worker_broker::{Facts, Op},
    types::{PathError, VirtPath},
};

use super::{Asked, Moving, Phase, State, Vouched, farewell};
use crate::ftp::{
    Event, Order, Out,
    data::{Algorithm, Via},
};

/// Logged in, nothing under way.
#[derive(Debug)]
pub struct Ready {
    vouched: Vouched,
    /// The working directory.
    pub cwd: VirtPath,
    /// TYPE A; otherwise TYPE I.
    pub text: bool,
    /// Only while there is something.
    noted: Option<Box<Noted>>,
    /// OPTS HASH: the sum that HASH tells.
    pub algorithm: Algorithm,
    /// SITE UMASK: bits that new files and directories do not get, beside those of the account's umask.
    pub umask: u16,
    /// SITE IDLE: seconds, never more than `idle_timeout_secs`.
    pub idle: Option<u32>,
    /// OPTS MLST: the facts in force.
    pub facts: Facts,
    /// How the next data connection comes about.
    pub via: Via,
    /// EPSV ALL was said (RFC 2428 4).
    pub only_epsv: bool,
}

/// What was said for a command to come, which spends it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// REST: where the next transfer starts; back to 0 with any transfer.
    pub rest: u64,
    /// RANG: the bytes that the next RETR or HASH is about, from the first to behind the last; back to all with any
    /// transfer.
    pub range: Option<(u64, u64)>,
    /// RNFR: what the next RNTO renames.
    pub renaming: Option<VirtPath>,
    /// SITE CPFR: what the next SITE CPTO copies.
    pub copying: Option<VirtPath>,
}

impl Ready {
    /// Just logged in, with this TYPE.
    pub(super) fn new(vouched: Vouched, text: bool) -> Self {
        Ready {
            vouched,
            cwd: VirtPath::root(),
            text,
            noted: None,
            algorithm: Algorithm::default(),
            umask: 0,
            idle: None,
            facts: Facts::EVERY,
            via: Via::Nothing,
            only_epsv: false,
        }
    }

    /// One step that no line caused.
    pub(super) fn on(self, event: &Event<'_>, out: &mut Out) -> State {
        match event {
            Event::BrokerLost => farewell("The service for this account has stopped; log in again.", out),
            Event::PortExpired => {
                out.order(Order::Unlisten);
                State::Ready(self.without_port())
            }
            _ => State::Ready(self),
        }
    }

    /// Whose session this is.
    pub fn vouched(&self) -> &Vouched {
        &self.vouched
    }

    /// The same, when the port that was agreed on is no more.
    #[must_use]
    pub fn without_port(mut self) -> Self {
        self.via = Via::Nothing;
        self
    }

    /// Takes note of something for a command to come.
    pub fn note(&mut self) -> &mut Noted {
        self.noted.get_or_insert_default()
    }

    /// Spends something that was noted.
    pub fn spend<T: Default>(&mut self, take: impl FnOnce(&mut Noted) -> T) -> T {
        let taken = self.noted.as_deref_mut().map(take).unwrap_or_default();
        self.noted.take_if(|noted| **noted == Noted::default());
        taken
    }

    /// The next transfer is about a whole file again.
    pub fn spend_offsets(&mut self) {
        self.spend(|noted| (noted.rest, noted.range) = (0, None));
    }

    /// The path a client means, or its reply when it means none.
    pub fn path(&self, written: &[u8], out: &mut Out) -> Option<VirtPath> {
        let refused = if written.is_empty() {
            (501, "A path is needed.")
        } else {
            match self.cwd.join(written) {
                Ok(path) => return Some(path),
                Err(PathError::Nul) => (501, "A name cannot hold NUL."),
                Err(PathError::TooLong) => (553, "The name is too long."),
            }
        };
        out.reply(refused.0, refused.1);
        None
    }

    /// Asks the broker.
    pub fn ask(self, op: Op, asked: Asked, out: &mut Out) -> State {
        out.order(Order::Ask(op));
        State::Moving(Box::new(Moving::new(self, Phase::Asked(asked))))
    }

    /// Asks the broker for something to transfer, and begins to get the data connection meanwhile.
    ///
    /// REST and RANG are spent, whatever becomes of the transfer (RFC 3659 5.3).
    pub fn ask_with_data(mut self, op: Op, asked: Asked, out: &mut Out) -> State {
        self.spend_offsets();
        out.order(Order::Ask(op));
        out.order(Order::Open(self.via));
        State::Moving(Box::new(Moving::new(self, Phase::Asked(asked))))
    }
}
