//! SITE UMASK: bits that new files and directories of this session do not get. It comes on top of the account's umask,
//! which is its administrator's: a session can only be more careful.

use super::chmod::parse_mode;
use crate::ftp::{Context, Out, State, state::Ready};

pub(super) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    if !arg.is_empty() {
        match parse_mode(arg).filter(|mask| *mask <= 0o777) {
            Some(mask) => ready.umask = mask,
            None => {
                out.reply(501, "Use SITE UMASK and an octal mask, 0 to 777.");
                return State::Ready(ready);
            }
        }
    }
    out.reply_fmt(200, format_args!("The umask of this session is {:03o}, on top of the account's.", ready.umask));
    State::Ready(ready)
}
