//! MFF: set facts of a file (draft-somers-ftp-mfxx 5): Modify and UNIX.mode; either all that are asked for or none.

use std::fmt::Write as _;

use child_ipc::link::{
    log::{Event as Happened, Level},
    worker_broker::{Done, Op, Why},
};

use super::{site::chmod, time};
use crate::ftp::{
    Context, Out, State,
    reply::Part,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let (written, rest) = super::word(arg);
    let facts = match parse(written) {
        Ok(facts) => facts,
        Err((code, text)) => {
            out.reply(code, text);
            return State::Ready(ready);
        }
    };
    match ready.path(rest, out) {
        Some(path) => {
            let op = Op::SetFacts { path: path.clone(), modified: facts.modified, mode: facts.mode };
            // What was set, as one number: which facts, and the mode that the reply repeats.
            let number =
                u64::from(facts.modified.is_some()) << 32 | facts.mode.map_or(0, |mode| 1 << 33 | u64::from(mode));
            ready.ask(op, Asked { number, ..Asked::about("MFF", path, done) }, out)
        }
        None => State::Ready(ready),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    modified: Option<i64>,
    mode: Option<u16>,
}

/// `fact=value;` once or more; names in any case.
fn parse(written: &[u8]) -> Result<Facts, (u16, &'static str)> {
    const FORM: (u16, &str) = (501, "Use MFF Modify=YYYYMMDDHHMMSS;UNIX.mode=octal; path.");
    let mut facts = Facts::default();
    let list = written.strip_suffix(b";").ok_or(FORM)?;
    for fact in list.split(|&b| b == b';') {
        let equals = fact.iter().position(|&b| b == b'=').ok_or(FORM)?;
        let (name, value) = (fact.get(..equals).unwrap_or_default(), fact.get(equals + 1..).unwrap_or_default());
        match name.to_ascii_lowercase().as_slice() {
            b"modify" => facts.modified = Some(time::read(value).ok_or(FORM)?),
            b"unix.mode" => facts.mode = Some(chmod::parse_mode(value).ok_or(FORM)?),
            _ => return Err((504, "Only the facts Modify and UNIX.mode can be set.")),
        }
    }
    Ok(facts)
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Stat(attrs)) => {
            let mut facts = String::new();
            if asked.number & 1 << 32 != 0 {
                let _ = write!(facts, "Modify={};", time::write(attrs.modified).unwrap_or_default());
            }
            if asked.number & 1 << 33 != 0 {
                let _ = write!(facts, "UNIX.mode=0{:03o};", asked.number & 0o7777);
            }
            out.reply_parts(213, &[Part::Text(&facts), Part::Text(" "), Part::Shown(asked.path.as_bytes())]);
            out.log(Level::Info, Happened::Change, format_args!("op=MFF path=\"{}\" facts={facts}", asked.path));
        }
        Ok(_) => return super::strange(ready, &asked, out),
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_in_any_case_and_order() {
        let both = Facts { modified: Some(0), mode: Some(0o640) };
        assert_eq!(parse(b"Modify=19700101000000;UNIX.mode=640;"), Ok(both));
        assert_eq!(parse(b"unix.MODE=0755;"), Ok(Facts { modified: None, mode: Some(0o755) }));
        for (bad, code) in [
            ("", 501),
            (";", 501),
            ("Modify=19700101000000", 501),
            ("Modify;", 501),
            ("Modify=now;", 501),
            ("UNIX.mode=9;", 501),
            ("Create=19700101000000;", 504),
            ("UNIX.mode=640;Size=0;", 504),
        ] {
            assert_eq!(parse(bad.as_bytes()).map_err(|(code, _)| code), Err(code), "{bad}");
        }
    }
}
