//! NOOP: an answer (RFC 959 4.1.3).

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(200, "OK.");
    state
}
