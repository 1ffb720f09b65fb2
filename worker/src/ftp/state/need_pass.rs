//! The client has said who it is; PASS is to prove it (RFC 959 4.1.1).

use child_ipc::types::{Secret, UserName};

use super::{
    Asking, NeedUser, State,
    asking::{By, failed},
};
use crate::ftp::{Context, Order, Out};

/// A name, no proof.
#[derive(Debug)]
pub struct NeedPass {
    /// Who the client says it is; `None` when no account can have that name, which only PASS tells the client.
    pub user: Option<UserName>,
    /// Refused logins so far.
    pub failures: u32,
    /// TYPE A, of whoever was logged in before (RFC 959 4.1.1: USER leaves the transfer parameters unchanged).
    pub text: bool,
}

impl NeedPass {
    /// The client has said who it is: its certificate may be enough, or it is asked for the password.
    pub fn begin(self, cx: &Context<'_>, out: &mut Out) -> State {
        match self.user {
            Some(user) if cx.shield.certified => {
                out.order(Order::Check(user.clone(), None));
                State::Asking(Asking { user, by: By::Certificate, failures: self.failures, text: self.text })
            }
            user => NeedPass { user, ..self }.ask(out),
        }
    }

    /// PASS comes next.
    pub(super) fn ask(self, out: &mut Out) -> State {
        out.reply(331, "Password, please.");
        State::NeedPass(self)
    }

    /// The client offers its proof.
    pub fn prove(self, password: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
        if cx.refuses_login(out) {
            return State::NeedUser(NeedUser { failures: self.failures, text: self.text });
        }
        let mut copy = Vec::with_capacity(password.len());
        copy.extend_from_slice(password);
        match (self.user, Secret::new(copy)) {
            (Some(user), Some(secret)) => {
                out.order(Order::Check(user.clone(), Some(secret)));
                let (failures, text) = (self.failures, self.text);
                State::Asking(Asking { user, by: By::Password, failures, text })
            }
            _ => failed(self.failures, self.text, cx, out),
        }
    }
}
