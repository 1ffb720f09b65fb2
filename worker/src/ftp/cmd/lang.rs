//! LANG: the language of replies (RFC 2640 4), of which there is one: English.
//!
//! FEAT does not tell of it, against RFC 2640 4: lftp takes that line for a promise that all names are UTF-8, whatever
//! its user has set, and spoils the others. With one language there is nothing to be found by it.

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    // RFC 1766 2: subtags of one to eight letters, to which RFC 3066 has added digits; case does not matter.
    let is_tag = |arg: &[u8]| {
        arg.split(|&b| b == b'-').all(|part| matches!(part.len(), 1..=8) && part.iter().all(u8::is_ascii_alphanumeric))
    };
    match arg {
        b"" => out.reply(200, "Replies are in English."),
        tag if !is_tag(tag) => out.reply(501, "That is no language tag."),
        [b'E' | b'e', b'N' | b'n'] | [b'E' | b'e', b'N' | b'n', b'-', ..] => out.reply(200, "Replies are in English."),
        _ => out.reply(504, "Replies are in English only."),
    }
    state
}
