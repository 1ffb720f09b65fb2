//! STRU: F is all there is (RFC 959 3.1.2, 4.1.2).

use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match arg {
        b"F" | b"f" => out.reply(200, "Structure is File."),
        b"R" | b"r" | b"P" | b"p" => out.reply(504, "Only STRU F is implemented."),
        _ => out.reply(501, "Use STRU F."),
    }
    State::Ready(ready)
}
