//! MFCT: set when a file was created (draft-somers-ftp-mfxx 4). Linux has no call for that, so it is refused.

use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(502, "The time of creation cannot be set on this system; MFMT sets that of modification.");
    State::Ready(ready)
}
