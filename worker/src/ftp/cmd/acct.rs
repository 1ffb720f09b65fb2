//! ACCT: accounting information (RFC 959 4.1.1); none is needed here.

use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(202, "No account information is needed.");
    State::Ready(ready)
}
