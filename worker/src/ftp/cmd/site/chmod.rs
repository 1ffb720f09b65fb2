//! SITE CHMOD: permission bits of a file or directory.

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::{super::changed, word};
use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready},
};

pub(super) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let (mode, rest) = word(arg);
    let Some(mode) = parse_mode(mode) else {
        out.reply(501, "Use SITE CHMOD and an octal mode, 0 to 777.");
        return State::Ready(ready);
    };
    match ready.path(rest, out) {
        Some(path) => {
            let asked = Asked { number: mode.into(), ..Asked::about("CHMOD", path.clone(), done) };
            ready.ask(Op::SetMode(path, mode), asked, out)
        }
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    changed(ready, &asked, answer, out, |_, out| out.reply(200, "Mode changed."))
}

/// One to four octal digits.
pub(in crate::ftp::cmd) fn parse_mode(text: &[u8]) -> Option<u16> {
    if text.is_empty() || text.len() > 4 {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok().filter(|_| text.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::parse_mode;

    #[test]
    fn a_mode_is_octal() {
        assert_eq!(parse_mode(b"644"), Some(0o644));
        assert_eq!(parse_mode(b"0755"), Some(0o755));
        for bad in ["", "8", "+644", "u+x", "00644", "-1"] {
            assert_eq!(parse_mode(bad.as_bytes()), None, "{bad}");
        }
    }
}
