//! LIST: a listing for people (RFC 959 4.1.3). Options are read as ls(1) reads them: `-a` adds hidden names, all others
//! are ignored, `--` ends them. What stands behind them is one path, byte for byte; only if nothing has that name, its last
//! component may have wildcards.

use child_ipc::{
    link::worker_broker::{Done, Form, Op, Storage, Why},
    types::{Blob, VirtPath},
};

use crate::ftp::{
    Context, Out, State,
    data::Move,
    state::{Asked, Ready, Transfer, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let (options, rest) = options(arg);
    ask("LIST", ready, rest, Form::Long, options.hidden, out)
}

/// Asks for a listing and begins to get the data connection.
pub(in crate::ftp) fn ask(
    verb: &'static str,
    ready: Ready,
    written: &[u8],
    form: Form,
    hidden: bool,
    out: &mut Out,
) -> State {
    match path(&ready, written, out) {
        Some(path) => {
            let written = match form {
                Form::Facts(_) => Blob::default(),
                // Far longer than what it comes to: that will do.
                Form::Long | Form::Names => Blob::new(written).unwrap_or_else(|_| Blob::cut(path.as_bytes())),
            };
            let op = Op::List { path: path.clone(), form, hidden, written };
            ready.ask_with_data(op, Asked::about(verb, path, done), out)
        }
        None => State::Ready(ready),
    }
}

/// The path of a listing: the working directory when none is written.
pub(in crate::ftp) fn path(ready: &Ready, written: &[u8], out: &mut Out) -> Option<VirtPath> {
    if written.is_empty() { Some(ready.cwd.clone()) } else { ready.path(written, out) }
}

/// What stands before the path.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::ftp) struct Options {
    /// `-a`, `-A` or their long names: names that begin with a dot as well.
    pub hidden: bool,
}

/// Takes options off the front of an argument: words of a `-` and something more, up to `--`.
pub(in crate::ftp) fn options(arg: &[u8]) -> (Options, &[u8]) {
    let (mut hidden, mut rest) = (false, arg);
    while let (option @ [b'-', _, ..], behind) = super::word(rest) {
        rest = behind;
        match option {
            b"--" => break,
            [b'-', b'-', long @ ..] => hidden |= matches!(long, b"all" | b"almost-all"),
            letters => hidden |= letters.iter().any(|b| matches!(b, b'a' | b'A')),
        }
    }
    (Options { hidden }, rest)
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Listing { bytes, .. }) => {
            let transfer = Transfer {
                verb: asked.verb,
                path: asked.path,
                chosen: None,
                started: cx.now,
                file: false,
                staged: None,
            };
            // A listing has CR LF lines already, whatever the TYPE.
            let order = Move::Send { from: 0, to: bytes, text: false, storage: Storage::MEMORY };
            moving::begin(ready, transfer, order, out)
        }
        Ok(_) => super::strange(ready, &asked, out),
        Err(why) => moving::nothing_to_move(ready, &asked, why, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_off_and_the_path_stays_whole() {
        let cases: [(&[u8], bool, &[u8]); 17] = [
            (b"", false, b""),
            (b"-a", true, b""),
            (b"-la ", true, b""),
            (b"-al /d", true, b"/d"),
            (b"-l -a /d", true, b"/d"),
            (b"-l  lead", false, b" lead"),
            (b"a b  c", false, b"a b  c"),
            (b"-- -d", false, b"-d"),
            (b"-a -- -a x", true, b"-a x"),
            (b"-- --", false, b"--"),
            (b"--", false, b""),
            (b"-", false, b"-"),
            (b"./-d", false, b"./-d"),
            (b"--color=auto -Q9 x", false, b"x"),
            (b"--all /d", true, b"/d"),
            (b"x -a", false, b"x -a"),
            (b"[ temp ]", false, b"[ temp ]"),
        ];
        for (arg, hidden, path) in cases {
            assert_eq!(options(arg), (Options { hidden }, path), "{}", arg.escape_ascii());
        }
    }
}
