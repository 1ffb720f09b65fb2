//! CLNT: the client's name, as FileZilla and others send it. Noted by nobody.

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(200, "OK.");
    state
}
