//! LANG: the language of replies (RFC 2640 4), of which there is one: English.
//!
//! FEAT does not tell of it, against RFC 2640 4: lftp takes that line for a promise that all names are UTF-8, whatever
//! its user has set, and spoils the others. With one language there is nothing to be found by it.

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    if arg.is_empty() || arg.eq_ignore_ascii_case(b"EN") {
        out.reply(200, "Replies are in English.");
    } else if arg.len() <= 64 && arg.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-') {
        out.reply(504, "Replies are in English only.");
    } else {
        out.reply(501, "That is no language tag.");
    }
    state
}
