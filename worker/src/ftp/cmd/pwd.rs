//! PWD, XPWD: the working directory, quotes in it doubled (RFC 959 4.1.3, appendix II; RFC 1123 4.1.3.1).

use crate::ftp::{Context, Out, State, reply::Part, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply_parts(257, &[Part::Quoted(ready.cwd.as_bytes()), Part::Text(" is the working directory.")]);
    State::Ready(ready)
}
