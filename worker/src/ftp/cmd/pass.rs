//! PASS: the proof (RFC 959 4.1.1). Its argument is never logged, and wiped where it was read.

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    match state {
        State::NeedPass(need) => need.prove(arg, cx, out),
        State::Ready(ready) => {
            out.reply(503, "Logged in already.");
            State::Ready(ready)
        }
        other => {
            out.reply(503, "USER comes first.");
            other
        }
    }
}
