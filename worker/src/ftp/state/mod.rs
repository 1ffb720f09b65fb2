//! Where a client stands. A step consumes one state and yields the next (RFC 959 5.4, 6).
//!
//! ```text
//! NeedUser -USER-> NeedPass -PASS-> Asking -granted-> Ready <-> Moving
//!     ^               ^---- refused ---'                |
//!     '------------------- REIN ------------------------'      anything -QUIT, 421-> Closing
//! ```
//! An event that a state does not expect belongs to an identity or a question that has ended: it is dropped.

mod asking;
pub mod moving;
mod need_pass;
mod need_user;
mod ready;

pub use asking::{Asking, Vouched};
pub use moving::{Asked, Moving, Phase, Then, ThenWorked, Transfer, Worked, Working};
pub use need_pass::NeedPass;
pub use need_user::NeedUser;
pub use ready::Ready;

use child_ipc::link::settings::Require;

use super::{
    Context, Event, Order, Out,
    line::Line,
    table::{self, Run},
};

/// Where a client stands.
#[derive(Debug)]
pub enum State {
    /// Nobody yet.
    NeedUser(NeedUser),
    /// A name, no proof.
    NeedPass(NeedPass),
    /// authd and the monitor are asked; lines wait.
    Asking(Asking),
    /// Logged in, nothing under way.
    Ready(Ready),
    /// Logged in, a question or a transfer under way; lines wait.
    Moving(Box<Moving>),
    /// Said good-bye; nothing is read any more.
    Closing,
}

/// What a client's time limit depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// For the client to log in.
    Login,
    /// For authd and the monitor.
    Verdict,
    /// For a command.
    Command,
    /// For a command, while a passive port is held.
    CommandWithPort,
    /// For a broker or the monitor.
    Answer,
    /// For data.
    Transfer,
    /// For nothing.
    Nothing,
}

impl State {
    /// A client that has just connected.
    pub fn new() -> Self {
        State::NeedUser(NeedUser::default())
    }

    /// One step.
    pub fn on(self, event: Event<'_>, cx: &Context<'_>, out: &mut Out) -> State {
        match event {
            Event::Line(line) => self.line(line, cx, out),
            Event::Expired(text) | Event::Farewell(text) => farewell(text, out),
            event => match self {
                State::Asking(asking) => asking.on(event, cx, out),
                State::Moving(moving) => moving.on(event, cx, out),
                State::Ready(ready) => ready.on(&event, out),
                other => other,
            },
        }
    }

    /// Whether a line may be given; otherwise it waits for an event.
    pub fn takes_lines(&self) -> bool {
        matches!(self, State::NeedUser(_) | State::NeedPass(_) | State::Ready(_))
    }

    /// Whether data moves, so that ABOR and STAT are looked for in the lines that wait.
    pub fn transferring(&self) -> bool {
        matches!(self, State::Moving(moving) if moving.transferring())
    }

    /// What is waited for.
    pub fn wait(&self) -> Wait {
        match self {
            State::NeedUser(_) | State::NeedPass(_) => Wait::Login,
            State::Asking(_) => Wait::Verdict,
            State::Ready(ready) if ready.via == super::data::Via::Passive => Wait::CommandWithPort,
            State::Ready(_) => Wait::Command,
            State::Moving(moving) if moving.uses_data() => Wait::Transfer,
            State::Moving(_) => Wait::Answer,
            State::Closing => Wait::Nothing,
        }
    }

    /// Refused logins so far.
    pub fn failures(&self) -> u32 {
        match self {
            State::NeedUser(state) => state.failures,
            State::NeedPass(state) => state.failures,
            State::Asking(state) => state.failures,
            State::Ready(_) | State::Moving(_) | State::Closing => 0,
        }
    }

    /// TYPE A. With MODE and STRU, which are what they are, this is all there is of transfer parameters.
    pub fn text(&self) -> bool {
        match self {
            State::NeedUser(state) => state.text,
            State::NeedPass(state) => state.text,
            State::Asking(state) => state.text,
            State::Ready(ready) => ready.text,
            State::Moving(moving) => moving.ready().text,
            State::Closing => true,
        }
    }

    fn line(self, line: Line<'_>, cx: &Context<'_>, out: &mut Out) -> State {
        match line {
            Line::Command(command) => self.command(command, cx, out),
            Line::TooLong => {
                out.reply(500, "Line too long.");
                self
            }
            Line::Control => {
                out.reply(501, "Control characters are not possible in a command.");
                self
            }
        }
    }

    /// Look-up and the checks that every verb shares.
    fn command(self, command: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
        let end = command.iter().position(|&b| b == b' ').unwrap_or(command.len());
        let (verb, rest) = command.split_at_checked(end).unwrap_or((command, b""));
        let arg = rest.get(1..).unwrap_or_default();
        let Some(row) = table::find(verb) else {
            out.reply(500, "Unknown command.");
            return self;
        };
        match (row.run, self) {
            (Run::Any(run), state) => run(state, arg, cx, out),
            (Run::Ready(_), State::Ready(ready)) if row.data && ready.via == super::data::Via::Nothing => {
                out.reply(425, "Use EPSV, PASV, EPRT or PORT first.");
                State::Ready(ready)
            }
            // RFC 4217 10.2: not with this PROT setting.
            (Run::Ready(_), State::Ready(ready)) if row.data && !cx.shield.private && cx.require() == Require::Data => {
                out.reply(521, "Data connections have to be under TLS: use PROT P.");
                State::Ready(ready)
            }
            (Run::Ready(run), State::Ready(ready)) => run(ready, arg, cx, out),
            (Run::Ready(_), state) => {
                out.reply(530, "Log in with USER and PASS first.");
                state
            }
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

/// 421 and close (RFC 959 5.4: may be said at any time).
pub(super) fn farewell(text: &str, out: &mut Out) -> State {
    out.reply(421, text);
    out.order(Order::Close);
    State::Closing
}
