//! CLNT: what the client is called. Not in an RFC; clients that send it expect 200, and nothing depends on it.

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    if arg.is_empty() {
        out.reply(501, "CLNT needs a name.");
    } else {
        out.reply(200, "Noted.");
    }
    state
}
