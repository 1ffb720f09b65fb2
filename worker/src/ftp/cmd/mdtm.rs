//! MDTM: when a file was changed last, UTC (RFC 3659 2.3, 3).

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::time;
use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match ready.path(arg, out) {
        Some(path) => ready.ask(Op::Stat(path.clone()), Asked::about("MDTM", path, done), out),
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Stat(attrs)) => match time::write(attrs.modified) {
            Some(text) => out.reply(213, &text),
            None => out.reply(550, "Its time is out of range."),
        },
        Ok(_) => return super::strange(ready, &asked, out),
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}
