//! XCRC, XMD5, XSHA1, XSHA256, XSHA512: the sum of a file, or of a part of it: 250 and hexadecimal digits.
//!
//! Not in an RFC; as in ProFTPD's `mod_digest`. A path in quotes (quotes in it doubled) may be followed by the first byte
//! and the one behind the last, or by the first alone. A path without quotes is taken as it is, unless two numbers end
//! it: those are a range then, so a name that ends in two numbers needs its quotes.

use std::fmt::Write as _;

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::rest;
use crate::ftp::{
    Context, Order, Out, State,
    data::{Algorithm, Work},
    state::{Asked, Moving, Phase, Ready, ThenWorked, Worked, Working, moving},
};

pub(in crate::ftp) fn crc32(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ask("XCRC", Algorithm::Crc32, ready, arg, out)
}

pub(in crate::ftp) fn md5(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ask("XMD5", Algorithm::Md5, ready, arg, out)
}

pub(in crate::ftp) fn sha1(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ask("XSHA1", Algorithm::Sha1, ready, arg, out)
}

pub(in crate::ftp) fn sha256(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ask("XSHA256", Algorithm::Sha256, ready, arg, out)
}

pub(in crate::ftp) fn sha512(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ask("XSHA512", Algorithm::Sha512, ready, arg, out)
}

fn ask(verb: &'static str, algorithm: Algorithm, ready: Ready, arg: &[u8], out: &mut Out) -> State {
    let Some(Wanted { path, first, behind }) = parse(arg) else {
        out.reply_fmt(501, format_args!("Use {verb} path, or {verb} \"path\" first behind-last."));
        return State::Ready(ready);
    };
    match ready.path(&path, out) {
        Some(path) => {
            let asked = Asked { number: first, until: behind, algorithm, ..Asked::about(verb, path.clone(), done) };
            ready.ask(Op::OpenRead(path), asked, out)
        }
        None => State::Ready(ready),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    path: Vec<u8>,
    first: u64,
    /// Behind the last byte; `None`: to the end of the file.
    behind: Option<u64>,
}

fn parse(arg: &[u8]) -> Option<Wanted> {
    if let Some(quoted) = arg.strip_prefix(b"\"") {
        let (path, rest) = unquote(quoted)?;
        let numbers: Vec<&[u8]> = rest.split(|&b| b == b' ').collect();
        return match numbers.as_slice() {
            [b""] => Some(Wanted { path, first: 0, behind: None }),
            [b"", first] => Some(Wanted { path, first: rest::parse(first)?, behind: None }),
            [b"", first, behind] => {
                let (first, behind) = (rest::parse(first)?, rest::parse(behind)?);
                (first <= behind).then_some(Wanted { path, first, behind: Some(behind) })
            }
            _ => None,
        };
    }
    let mut words = arg.rsplitn(3, |&b| b == b' ');
    let range = words.next().and_then(rest::parse).zip(words.next().and_then(rest::parse));
    match (range, words.next()) {
        (Some((behind, first)), Some(path)) if !path.is_empty() => {
            (first <= behind).then(|| Wanted { path: path.to_vec(), first, behind: Some(behind) })
        }
        _ => (!arg.is_empty()).then(|| Wanted { path: arg.to_vec(), first: 0, behind: None }),
    }
}

/// The name up to the closing quote, and what is behind it.
fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut name, mut rest) = (Vec::new(), text);
    loop {
        let end = rest.iter().position(|&b| b == b'"')?;
        let (piece, behind) = rest.split_at_checked(end)?;
        name.extend_from_slice(piece);
        let behind = behind.get(1..)?;
        match behind.strip_prefix(b"\"") {
            Some(more) => {
                name.push(b'"');
                rest = more;
            }
            None => return (!name.is_empty()).then_some((name, behind)),
        }
    }
}

fn done(ready: Ready, mut asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Opened(file)) if asked.number > file.size || asked.until.is_some_and(|behind| behind > file.size) => {
            out.reply(550, "That range lies behind the end of the file.");
            State::Ready(ready)
        }
        Ok(Done::Opened(file)) => {
            asked.until.get_or_insert(file.size);
            begin(ready, asked, file.storage.device, summed, out)
        }
        Ok(_) => super::strange(ready, &asked, out),
        Err(why) => {
            moving::refused(&asked, why, out);
            State::Ready(ready)
        }
    }
}

/// Orders the sum of the bytes `number` to `until` of a file on this device.
pub(super) fn begin(ready: Ready, asked: Asked, device: u64, then: ThenWorked, out: &mut Out) -> State {
    let (algorithm, from, to) = (asked.algorithm, asked.number, asked.until.unwrap_or(asked.number));
    out.order(Order::Work(Work::Sum { algorithm, from, to, device }));
    State::Moving(Box::new(Moving::new(ready, Phase::Working(Working { asked, then }))))
}

fn summed(ready: Ready, _asked: Asked, sum: Worked, _cx: &Context<'_>, out: &mut Out) -> State {
    match sum {
        Ok(sum) => out.reply(250, &hex(&sum).to_ascii_uppercase()),
        Err(how) => moving::file_failed(how, "there is no sum", out),
    }
    State::Ready(ready)
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_may_follow_the_path() {
        let wanted = |path: &str, first, behind| Some(Wanted { path: path.as_bytes().to_vec(), first, behind });
        for (arg, expected) in [
            ("f", wanted("f", 0, None)),
            ("f 2 9", wanted("f", 2, Some(9))),
            ("a b 2 9", wanted("a b", 2, Some(9))),
            ("track 7", wanted("track 7", 0, None)),
            ("7 8", wanted("7 8", 0, None)),
            ("\"track 7 8\"", wanted("track 7 8", 0, None)),
            ("\"f\" 5", wanted("f", 5, None)),
            ("\"say \"\"hi\"\"\" 0 1", wanted("say \"hi\"", 0, Some(1))),
            ("", None),
            ("f 9 2", None),
            ("\"f", None),
            ("\"\"", None),
            ("\"f\" x", None),
            ("\"f\" 1 2 3", None),
            ("\"f\"1 2", None),
        ] {
            assert_eq!(parse(arg.as_bytes()), expected, "{arg}");
        }
    }
}
