//! TYPE: A and A N (text), I and L 8 (bytes); E, and the other forms of A, are not implemented (RFC 959 3.1.1, 4.1.2).

use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match parse(arg) {
        Some(Ok(text)) => {
            ready.text = text;
            out.reply(200, if text { "Type is ASCII." } else { "Type is Image." });
        }
        Some(Err(())) => out.reply(504, "That type is not implemented; A, I and L 8 are."),
        None => out.reply(501, "Use TYPE A, I or L 8."),
    }
    State::Ready(ready)
}

/// Text or not; `Err` for types of RFC 959 that are not implemented, `None` for what is no type.
fn parse(arg: &[u8]) -> Option<Result<bool, ()>> {
    let upper: Vec<u8> = arg.iter().filter(|b| **b != b' ').map(u8::to_ascii_uppercase).collect();
    match upper.as_slice() {
        b"A" | b"AN" => Some(Ok(true)),
        b"I" | b"L8" => Some(Ok(false)),
        [b'A' | b'E' | b'L', ..] => Some(Err(())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_write_the_types_in_many_ways() {
        for (written, text) in [("i", false), ("L 8", false), ("l8", false), ("A N", true), ("a n", true), ("A", true)]
        {
            assert_eq!(parse(written.as_bytes()), Some(Ok(text)), "{written}");
        }
        for no in ["L 7", "A X", "E", "A T", "L"] {
            assert_eq!(parse(no.as_bytes()), Some(Err(())), "{no}");
        }
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"X"), None);
    }
}
