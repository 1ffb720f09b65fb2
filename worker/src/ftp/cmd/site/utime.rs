//! SITE UTIME: times of a file, UTC. Two forms are about: `YYYYMMDDhhmm[ss] path` sets both times to one;
//! `path atime mtime ctime UTC` sets the first two (nobody can set the third).

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::{
    super::{changed, time},
    word,
};
use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready},
};

pub(super) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let Some((path, accessed, modified)) = parse(arg) else {
        out.reply(501, "Use SITE UTIME YYYYMMDDhhmm[ss] path, or SITE UTIME path atime mtime ctime UTC.");
        return State::Ready(ready);
    };
    match ready.path(path, out) {
        Some(path) => {
            let op = Op::SetTimes { path: path.clone(), accessed, modified };
            ready.ask(op, Asked::about("UTIME", path, done), out)
        }
        None => State::Ready(ready),
    }
}

/// Path, access time, modification time.
fn parse(arg: &[u8]) -> Option<(&[u8], i64, i64)> {
    let long: Vec<&[u8]> = arg.rsplitn(5, |&b| b == b' ').collect();
    if let [zone, changed, modified, accessed, path] = long.as_slice()
        && zone.eq_ignore_ascii_case(b"UTC")
    {
        time::read_short(changed)?;
        return Some((path, time::read_short(accessed)?, time::read_short(modified)?));
    }
    let (written, path) = word(arg);
    let both = time::read_short(written)?;
    (!path.is_empty()).then_some((path, both, both))
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    changed(ready, &asked, answer.map(|_| Done::Nothing), out, |_, out| out.reply(200, "Times changed."))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn both_forms_are_read() {
        for (arg, expected) in [
            ("197001010001 f", Some(("f", 60, 60))),
            ("19700101000002 a b", Some(("a b", 2, 2))),
            ("a b 19700101000001 19700101000002 19700101000003 UTC", Some(("a b", 1, 2))),
            ("f 197001010001 197001010002 197001010003 utc", Some(("f", 60, 120))),
            ("f 19700101000001 19700101000002 x UTC", None),
            ("f", None),
            ("19700101000002", None),
            ("19700101000002 ", None),
            ("19701301000002 f", None),
            ("", None),
        ] {
            let expected = expected.map(|(path, accessed, modified)| (path.as_bytes(), accessed, modified));
            assert_eq!(parse(arg.as_bytes()), expected, "{arg}");
        }
    }
}
