//! RANG: the bytes that the next RETR or HASH is about, the last one included (draft-bryan-ftp-range 3); `RANG 1 0`:
//! all of them. Spent like REST, which it replaces. STOR, APPE and STOU are refused behind it.

use super::{rest, word};
use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ready.spend_offsets();
    match parse(arg) {
        Some(Range::Bytes(from, behind)) => {
            ready.note().range = Some((from, behind));
            out.reply_fmt(350, format_args!("Bytes {from} to {} are next.", behind.saturating_sub(1)));
        }
        Some(Range::All) => out.reply(350, "All bytes are next."),
        None => out.reply(501, "Use RANG with the first byte and the last."),
    }
    State::Ready(ready)
}

#[derive(Debug, PartialEq, Eq)]
enum Range {
    All,
    /// From the first byte to behind the last.
    Bytes(u64, u64),
}

fn parse(arg: &[u8]) -> Option<Range> {
    let (first, last) = word(arg);
    match (rest::parse(first)?, rest::parse(last)?) {
        (1, 0) => Some(Range::All),
        (first, last) if first <= last => Some(Range::Bytes(first, last + 1)),
        _ => None,
    }
}

/// Refuses what changes files, for a range of one (draft-bryan-ftp-range 4.3); the range is spent.
pub(in crate::ftp) fn impossible(ready: &mut Ready, verb: &str, out: &mut Out) -> bool {
    let impossible = ready.spend(|noted| noted.range.take()).is_some();
    if impossible {
        out.reply_fmt(554, format_args!("RANG and {verb} do not go together; use REST."));
    }
    impossible
}

/// A range in TYPE A counts bytes nobody has counted, like REST.
pub(in crate::ftp) fn impossible_in_text(ready: &Ready, range: Option<(u64, u64)>, out: &mut Out) -> bool {
    let impossible = ready.text && range.is_some();
    if impossible {
        out.reply(551, "RANG is not possible in ASCII mode; use TYPE I.");
    }
    impossible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_is_included() {
        assert_eq!(parse(b"0 0"), Some(Range::Bytes(0, 1)));
        assert_eq!(parse(b"10 49"), Some(Range::Bytes(10, 50)));
        assert_eq!(parse(b"1 0"), Some(Range::All));
        for bad in ["", "1", "2 1", "1 0 0", "-1 5", "x y", "0  1", "0 9223372036854775808"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
