//! REST: where the next transfer starts (RFC 3659 5). It stays armed until one is tried.

use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ready.spend_offsets();
    match parse(arg) {
        Some(offset) => {
            ready.note().rest = offset;
            out.reply_fmt(350, format_args!("Restarting at {offset}."));
        }
        None => out.reply(501, "Use REST and a number of bytes."),
    }
    State::Ready(ready)
}

/// A number that a file offset can hold.
pub fn parse(arg: &[u8]) -> Option<u64> {
    if arg.is_empty() || !arg.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let offset: u64 = std::str::from_utf8(arg).ok()?.parse().ok()?;
    i64::try_from(offset).ok().map(|_| offset)
}

/// An offset in TYPE A counts bytes nobody has counted (RFC 3659 5.3): refused where it is used.
pub(in crate::ftp) fn impossible_in_text(ready: &Ready, offset: u64, out: &mut Out) -> bool {
    let impossible = ready.text && offset > 0;
    if impossible {
        out.reply(554, "REST is not possible in ASCII mode; use TYPE I.");
    }
    impossible
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_numbers_that_an_offset_can_hold() {
        assert_eq!(parse(b"00010"), Some(10));
        assert_eq!(parse(b"9223372036854775807"), Some(i64::MAX as u64));
        for bad in ["", "-1", "+5", "5x", "1e3", "9223372036854775808", "18446744073709551616", " 5"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
