//! SYST: what kind of system this is (RFC 959 4.1.3). Clients choose their listing parser by these very words.

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(215, "UNIX Type: L8");
    state
}
