//! A password or a certificate is being checked: authd says no, or the monitor says who the session is.
//!
//! The only file that can make a [`Vouched`], and only from the monitor's word: authd's own "accepted" makes nobody
//! anything here.

use child_ipc::{
    link::{
        log::{Event as Happened, Level},
        worker_authd::Outcome,
    },
    types::{BrokerId, SessionId, UserName},
};

use super::{NeedPass, NeedUser, Ready, State, farewell};
use crate::ftp::{Context, Event, Out};

/// authd and the monitor are asked.
#[derive(Debug)]
pub struct Asking {
    /// Who the client says it is.
    pub user: UserName,
    /// What is asked about.
    pub by: By,
    /// Refused logins so far.
    pub failures: u32,
    /// TYPE A, once logged in.
    pub text: bool,
}

/// What a client is to be logged in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// PASS, and the certificate if it has shown one.
    Password,
    /// The certificate alone, at USER.
    Certificate,
}

/// Proof that the monitor granted this session.
#[derive(Debug)]
pub struct Vouched {
    user: UserName,
    session: SessionId,
    broker: BrokerId,
}

impl Vouched {
    /// The account.
    pub fn user(&self) -> &UserName {
        &self.user
    }

    /// The session, as monitor and authd know it.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The account's broker.
    pub fn broker(&self) -> BrokerId {
        self.broker
    }
}

impl Asking {
    /// One step.
    pub fn on(self, event: Event<'_>, cx: &Context<'_>, out: &mut Out) -> State {
        match event {
            Event::Granted(session, broker) => {
                match self.by {
                    By::Password => out.reply(230, "Logged in."),
                    By::Certificate => out.reply(232, "Logged in by the certificate."),
                }
                out.log(Level::Info, Happened::Login, format_args!("account=\"{}\"", self.user));
                State::Ready(Ready::new(Vouched { user: self.user, session, broker }, self.text))
            }
            // The monitor's word is waited for.
            Event::Verdict(Outcome::Accepted) => State::Asking(self),
            // It is not enough, or authd is busy with passwords: nothing is said of either, and nothing has failed.
            Event::Verdict(_) if self.by == By::Certificate => {
                NeedPass { user: Some(self.user), failures: self.failures, text: self.text }.ask(out)
            }
            Event::Verdict(Outcome::Rejected) => {
                out.log(Level::Info, Happened::LoginFailed, format_args!("account=\"{}\"", self.user));
                failed(self.failures, self.text, cx, out)
            }
            Event::Verdict(Outcome::Busy) => {
                out.log(Level::Warning, Happened::Limit, format_args!("reason=\"password checks queue full\""));
                farewell("Too many logins at once; try again shortly.", out)
            }
            Event::GrantRefused => farewell("This account cannot be served now; try again later.", out),
            Event::NoAuthd => farewell("Logins are not possible now; try again shortly.", out),
            _ => State::Asking(self),
        }
    }
}

/// A login is refused, without a word about why.
pub(super) fn failed(before: u32, text: bool, cx: &Context<'_>, out: &mut Out) -> State {
    let failures = before.saturating_add(1);
    out.reply(530, "Login incorrect.");
    let most = cx.settings.max_login_failures;
    if most > 0 && failures >= most {
        out.log(Level::Warning, Happened::Limit, format_args!("reason=\"max_login_failures\" failures={failures}"));
        return farewell("Too many failed logins.", out);
    }
    State::NeedUser(NeedUser { failures, text })
}
