//! MFMT: set when a file was changed last, UTC (draft-somers-ftp-mfxx 3).

use child_ipc::link::{
    log::{Event as Happened, Level},
    worker_broker::{Done, Op, Why},
};

use super::time;
use crate::ftp::{
    Context, Out, State,
    reply::Part,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let end = arg.iter().position(|&b| b == b' ').unwrap_or(arg.len());
    let (written, rest) = arg.split_at_checked(end).unwrap_or((arg, b""));
    let Some(modified) = time::read(written) else {
        out.reply(501, "Use MFMT YYYYMMDDHHMMSS path.");
        return State::Ready(ready);
    };
    match ready.path(rest.get(1..).unwrap_or_default(), out) {
        Some(path) => ready.ask(Op::SetModified(path.clone(), modified), Asked::about("MFMT", path, done), out),
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Stat(attrs)) => {
            let text = time::write(attrs.modified).unwrap_or_default();
            let path = asked.path.as_bytes();
            out.reply_parts(213, &[Part::Text("Modify="), Part::Text(&text), Part::Text("; "), Part::Shown(path)]);
            out.log(Level::Info, Happened::Change, format_args!("op=MFMT path=\"{}\" time={text}", asked.path));
        }
        Ok(_) => return super::strange(ready, &asked, out),
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}
