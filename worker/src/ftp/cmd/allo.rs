//! ALLO: room for a file (RFC 959 4.1.3). Nothing has to be reserved here; 200, for 202 sends some cameras away.

use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    if possible(arg) {
        out.reply(200, "No room has to be reserved.");
    } else {
        out.reply(501, "Use ALLO and a number of bytes.");
    }
    State::Ready(ready)
}

/// A number, and perhaps `R` and a number.
fn possible(arg: &[u8]) -> bool {
    let number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let words: Vec<&[u8]> = arg.split(|&b| b == b' ').collect();
    match words.as_slice() {
        [bytes] => number(bytes),
        [bytes, b"R" | b"r", record] => number(bytes) && number(record),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::possible;

    #[test]
    fn a_number_and_perhaps_a_record_size() {
        assert!(possible(b"1048576") && possible(b"1048576 R 512"));
        assert!(!possible(b"") && !possible(b"x") && !possible(b"1 R") && !possible(b"1 X 2"));
    }
}
