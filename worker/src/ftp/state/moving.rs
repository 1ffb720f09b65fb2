//! Logged in, a question or a transfer under way: what the answer means, and how a transfer ends.

use std::num::NonZeroU32;

use child_ipc::{
    link::{
        log::{Event as Happened, Level},
        worker_broker::{Done, Op, Why},
    },
    types::VirtPath,
};

use super::{Ready, State, farewell};
use crate::ftp::{
    Context, Event, Order, Out, cmd,
    data::{Algorithm, Ending, How, Move},
    reply::Part,
};

/// What the verb that asked does with the answer.
pub type Then = fn(Ready, Asked, Result<Done, Why>, &Context<'_>, &mut Out) -> State;

/// The sum, or nothing to say of a copy; or why there is none.
pub type Worked = Result<Vec<u8>, How>;

/// What the verb that ordered a sum or a copy does with the result.
pub type ThenWorked = fn(Ready, Asked, Worked, &Context<'_>, &mut Out) -> State;

/// A question or a transfer under way.
#[derive(Debug)]
pub struct Moving {
    ready: Ready,
    phase: Phase,
    /// The broker died; the transfer goes on with the descriptors it has, then the session ends.
    lost: bool,
    /// The client said ABOR, and has not had its 426.
    aborted: bool,
}

/// What is under way.
#[derive(Debug)]
pub enum Phase {
    /// A passive port is looked for: for EPSV, or for PASV.
    Listening {
        /// EPSV.
        extended: bool,
    },
    /// The broker is asked.
    Asked(Asked),
    /// The loop reads a listing (STAT), for a reply with this code.
    Reading(VirtPath, u16),
    /// Bytes move, or the data connection is waited for.
    Transfer(Transfer),
    /// A file is summed or copied.
    Working(Working),
    /// An upload has ended in order, and gets its name.
    Publishing(Transfer, Ending),
}

/// A question to the broker, and what is needed when the answer comes.
#[derive(Debug)]
pub struct Asked {
    /// The verb.
    pub verb: &'static str,
    /// What it is about.
    pub path: VirtPath,
    /// The second path (RNTO).
    pub other: Option<VirtPath>,
    /// A number that the verb needs again: an offset, a mode.
    pub number: u64,
    /// Where what is wanted ends (RANG): behind its last byte; or where a file is to be cut.
    pub until: Option<u64>,
    /// The sum that is wanted.
    pub algorithm: Algorithm,
    /// What happens with the answer.
    pub then: Then,
}

impl Asked {
    /// A question about one path.
    pub fn about(verb: &'static str, path: VirtPath, then: Then) -> Self {
        Asked { verb, path, other: None, number: 0, until: None, algorithm: Algorithm::default(), then }
    }
}

/// A transfer under way.
#[derive(Debug)]
pub struct Transfer {
    /// The verb.
    pub verb: &'static str,
    /// What is sent or received.
    pub path: VirtPath,
    /// What the file is called (STOU).
    pub chosen: Option<VirtPath>,
    /// When it began.
    pub started: u64,
    /// A file, so that the log has a line for it; not a listing.
    pub file: bool,
    /// What the broker is told to publish when the upload has ended in order; otherwise it is removed.
    pub staged: Option<NonZeroU32>,
}

/// A sum or a copy under way.
#[derive(Debug)]
pub struct Working {
    /// What it is about.
    pub asked: Asked,
    /// What happens with the result.
    pub then: ThenWorked,
}

impl Moving {
    /// Something is under way.
    pub fn new(ready: Ready, phase: Phase) -> Self {
        Moving { ready, phase, lost: false, aborted: false }
    }

    /// Whether it takes its time, and ABOR cuts it.
    pub fn transferring(&self) -> bool {
        self.goes_on_alone() && !self.aborted
    }

    /// Whether the broker has done its part for now.
    fn goes_on_alone(&self) -> bool {
        matches!(self.phase, Phase::Transfer(_) | Phase::Working(_))
    }

    /// Whether it has to do with a data connection.
    pub fn uses_data(&self) -> bool {
        matches!(self.phase, Phase::Transfer(_))
    }

    /// Whose session this is.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// One step.
    pub fn on(mut self: Box<Self>, event: Event<'_>, cx: &Context<'_>, out: &mut Out) -> State {
        if matches!(event, Event::BrokerLost) {
            if self.goes_on_alone() {
                self.lost = true;
                return State::Moving(self);
            }
            out.reply(451, "The service for this account has stopped.");
            return farewell("Log in again.", out);
        }
        if matches!(event, Event::Abort) && self.transferring() {
            out.order(Order::Abort);
            self.aborted = true;
            return State::Moving(self);
        }
        let Moving { ready, phase, lost, aborted } = *self;
        match (phase, event) {
            (Phase::Asked(asked), Event::Answer(answer)) => (asked.then)(ready, asked, answer, cx, out),
            (Phase::Listening { extended }, Event::Listening(port)) => {
                cmd::epsv::listening(ready, extended, port, cx, out)
            }
            (Phase::Reading(path, code), Event::Listing(text)) => {
                cmd::stat::listing(ready, &path, code, text.as_deref(), out)
            }
            (Phase::Transfer(transfer), Event::Ended(ending)) => on_ended(ready, transfer, lost, ending, cx, out),
            (Phase::Publishing(transfer, ending), Event::Answer(answer)) => {
                State::Ready(published(ready, &transfer, ending, answer, cx, out))
            }
            (Phase::Transfer(transfer), Event::Status { moved }) => {
                out.reply_fmt(211, format_args!("{} in progress, {moved} bytes moved.", transfer.verb));
                State::Moving(Box::new(Moving { ready, phase: Phase::Transfer(transfer), lost, aborted }))
            }
            (Phase::Working(working), event) => on_working(ready, working, (lost, aborted), event, cx, out),
            (phase, _) => State::Moving(Box::new(Moving { ready, phase, lost, aborted })),
        }
    }
}

/// A sum or a copy ends, or is asked after.
fn on_working(
    ready: Ready,
    working: Working,
    (lost, aborted): (bool, bool),
    event: Event<'_>,
    cx: &Context<'_>,
    out: &mut Out,
) -> State {
    let state = match event {
        Event::Worked(Err(How::Aborted)) => {
            out.reply(426, "Aborted.");
            State::Ready(ready.without_port())
        }
        Event::Worked(result) => (working.then)(ready, working.asked, result, cx, out),
        event => {
            if let Event::Status { moved } = event {
                out.reply_fmt(211, format_args!("{} in progress, {moved} bytes done.", working.asked.verb));
            }
            return State::Moving(Box::new(Moving { ready, phase: Phase::Working(working), lost, aborted }));
        }
    };
    if lost { farewell("The service for this account has stopped; log in again.", out) } else { state }
}

/// A transfer ends; an upload under a hidden name is not acknowledged before it has its own.
fn on_ended(ready: Ready, transfer: Transfer, lost: bool, ending: Ending, cx: &Context<'_>, out: &mut Out) -> State {
    match (ending.how, transfer.staged) {
        (How::Complete, Some(_)) if lost => {
            out.reply(451, "The service for this account has stopped; the file is not stored.");
            log(Level::Warning, &transfer, ending.bytes, "not-published", cx, out);
            return farewell("Log in again.", out);
        }
        (How::Complete, Some(staged)) => {
            out.order(Order::Ask(Op::Publish { staged, sync: cx.settings.sync_uploads }));
            return State::Moving(Box::new(Moving::new(ready, Phase::Publishing(transfer, ending))));
        }
        _ => {}
    }
    let ready = ended(ready, &transfer, ending, cx, out);
    if lost {
        return farewell("The service for this account has stopped; log in again.", out);
    }
    State::Ready(ready)
}

/// The broker has given an upload its name, or could not.
fn published(
    ready: Ready,
    transfer: &Transfer,
    ending: Ending,
    answer: Result<Done, Why>,
    cx: &Context<'_>,
    out: &mut Out,
) -> Ready {
    match answer {
        Ok(_) => ended(ready, transfer, ending, cx, out),
        Err(why) => {
            out.refused(why);
            log(Level::Warning, transfer, ending.bytes, "not-published", cx, out);
            ready.without_port()
        }
    }
}

/// Says 150 and orders the bytes to move.
pub fn begin(ready: Ready, transfer: Transfer, order: Move, out: &mut Out) -> State {
    match (&transfer.chosen, order) {
        // RFC 1123 4.1.2.9: exactly this form.
        (Some(path), _) => out.reply_parts(150, &[Part::Text("FILE: "), Part::Path(path.seen_from(&ready.cwd))]),
        (None, Move::Send { from, to, .. }) => {
            out.reply_fmt(150, format_args!("Opening data connection ({} bytes).", to.saturating_sub(from)));
        }
        (None, Move::Receive { .. }) => out.reply(150, "Ready for data."),
    }
    out.order(Order::Move(order));
    State::Moving(Box::new(Moving::new(ready, Phase::Transfer(transfer))))
}

/// The broker has nothing to transfer: the data connection is given up.
pub fn nothing_to_move(ready: Ready, asked: &Asked, why: Why, out: &mut Out) -> State {
    out.order(Order::Cut);
    refused(asked, why, out);
    State::Ready(ready.without_port())
}

/// Tells client and log of a refusal.
pub fn refused(asked: &Asked, why: Why, out: &mut Out) {
    out.refused(why);
    out.log(Level::Info, Happened::Refused, format_args!("op={} path=\"{}\" why={why:?}", asked.verb, asked.path));
}

/// The final reply of a transfer.
fn ended(ready: Ready, transfer: &Transfer, ending: Ending, cx: &Context<'_>, out: &mut Out) -> Ready {
    match (ending.how, &transfer.chosen) {
        (How::Complete, Some(path)) => {
            out.reply_parts(226, &[Part::Text("Stored as "), Part::Shown(path.seen_from(&ready.cwd))]);
        }
        (How::Complete, None) => out.reply(226, "Transfer complete."),
        (How::NoConnection, _) => out.reply(425, "No data connection."),
        (How::Reset, _) => out.reply(426, "Data connection lost; the transfer is not complete."),
        (How::Cut, _) => out.reply(426, "The end came without TLS close_notify; the transfer is not complete."),
        // RFC 4217 10.2: the TLS negotiation failed or was unacceptable.
        (How::Unsecured(why), _) => out.reply_fmt(522, format_args!("No TLS on the data connection: {why}.")),
        (How::Stalled, _) => out.reply(426, "Nothing moved for too long; the transfer is not complete."),
        (How::Aborted, _) => out.reply(426, "Transfer aborted."),
        (How::Shrunk | How::File(_), _) => file_failed(ending.how, "the transfer is not complete", out),
    }
    let (level, result) = match ending.how {
        How::Complete => (Level::Info, "complete"),
        How::NoConnection => (Level::Info, "no-connection"),
        How::Reset => (Level::Info, "reset"),
        How::Cut => (Level::Info, "no-close-notify"),
        How::Unsecured(_) => (Level::Info, "no-tls"),
        How::Stalled => (Level::Info, "stalled"),
        How::Aborted => (Level::Info, "aborted"),
        How::Shrunk => (Level::Warning, "shrunk"),
        How::File(_) => (Level::Warning, "file-error"),
    };
    log(level, transfer, ending.bytes, result, cx, out);
    ready.without_port()
}

/// The reply when the file is to blame.
pub fn file_failed(how: How, what: &str, out: &mut Out) {
    const FULL: [rustix::io::Errno; 2] = [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT];
    match how {
        How::Shrunk => out.reply_fmt(451, format_args!("The file became shorter meanwhile; {what}.")),
        How::File(errno) if FULL.iter().any(|full| full.raw_os_error() == errno) => {
            out.reply_fmt(452, format_args!("No space left; {what}."));
        }
        // The file system's longest file, or the service's (RLIMIT_FSIZE). RFC 959 4.2.2: exceeded storage allocation.
        How::File(errno) if errno == rustix::io::Errno::FBIG.raw_os_error() => {
            out.reply_fmt(552, format_args!("The file would be too long; {what}."));
        }
        How::File(errno) => out.reply_fmt(451, format_args!("Local error (errno {errno}); {what}.")),
        How::Complete | How::NoConnection | How::Reset | How::Cut | How::Unsecured(_) | How::Stalled | How::Aborted => {
            out.reply_fmt(451, format_args!("Local error; {what}."));
        }
    }
}

fn log(level: Level, transfer: &Transfer, bytes: u64, result: &str, cx: &Context<'_>, out: &mut Out) {
    let Transfer { verb, path, chosen, started, file, staged: _ } = transfer;
    if !file {
        return;
    }
    let (path, ms) = (chosen.as_ref().unwrap_or(path), cx.now.saturating_sub(*started));
    let text = format_args!("op={verb} path=\"{path}\" bytes={bytes} ms={ms} result={result}");
    out.log(level, Happened::Transfer, text);
}
