//! AVBL: bytes that can still be stored (draft-peterson-streamlined-ftp-command-extensions 4).

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::list;
use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match list::path(&ready, arg, out) {
        Some(path) => ready.ask(Op::Space(path.clone()), Asked::about("AVBL", path, done), out),
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Space(bytes)) => out.reply_fmt(213, format_args!("{bytes}")),
        Ok(_) => return super::strange(ready, &asked, out),
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}
