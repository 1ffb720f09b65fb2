//! CCC: back to a control connection in clear (RFC 2228 3). Refused: whoever could read along could go on in the session.

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, _arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    if cx.shield.on {
        out.reply(534, "The control connection stays under TLS.");
    } else {
        out.reply(533, "The control connection is not under TLS.");
    }
    state
}
