//! SITE HELP: the SITE commands, from their table.

use super::TABLE;
use crate::ftp::{Context, Out, State, state::Ready};

pub(super) fn run(ready: Ready, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.first(214, "These SITE commands are known:");
    for (name, args, _) in TABLE {
        out.inner(format!("{name} {args}").trim_end().as_bytes());
    }
    out.reply(214, "Modes and masks are octal numbers, times UTC.");
    State::Ready(ready)
}
