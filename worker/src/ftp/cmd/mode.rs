//! MODE: S is all there is (RFC 959 3.4, 4.1.2).

use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match arg {
        b"S" | b"s" => out.reply(200, "Mode is Stream."),
        b"B" | b"b" | b"C" | b"c" => out.reply(504, "Only MODE S is implemented."),
        _ => out.reply(501, "Use MODE S."),
    }
    State::Ready(ready)
}
