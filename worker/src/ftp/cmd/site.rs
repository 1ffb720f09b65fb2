//! SITE: what only this server has (RFC 959 4.1.3): CHMOD and HELP.

use ipc::link::worker_broker::{Done, Op, Why};

use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let (verb, rest) = word(arg);
    match verb.to_ascii_uppercase().as_slice() {
        b"CHMOD" => chmod(ready, rest, out),
        b"HELP" => {
            out.first(214, "These SITE commands are known:");
            out.inner(b"CHMOD mode path");
            out.inner(b"HELP");
            out.reply(214, "The mode is an octal number.");
            State::Ready(ready)
        }
        b"" => {
            out.reply(501, "SITE needs a command; SITE HELP tells which there are.");
            State::Ready(ready)
        }
        _ => {
            out.reply(504, "Unknown SITE command; SITE HELP tells which there are.");
            State::Ready(ready)
        }
    }
}

fn chmod(ready: Ready, arg: &[u8], out: &mut Out) -> State {
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
    super::changed(ready, &asked, answer, out, |_, out| out.reply(200, "Mode changed."))
}

/// The first word, and what is behind the space.
fn word(arg: &[u8]) -> (&[u8], &[u8]) {
    let end = arg.iter().position(|&b| b == b' ').unwrap_or(arg.len());
    let (word, rest) = arg.split_at_checked(end).unwrap_or((arg, b""));
    (word, rest.get(1..).unwrap_or_default())
}

/// One to four octal digits.
fn parse_mode(text: &[u8]) -> Option<u16> {
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
