//! MLST: the facts of one thing, over the control connection (RFC 3659 7.1, 7.2).

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::list;
use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match list::path(&ready, arg, out) {
        Some(path) => {
            let op = Op::Facts { path: path.clone(), facts: ready.facts };
            ready.ask(op, Asked::about("MLST", path, done), out)
        }
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Line(line)) => {
            out.first(250, "Listing");
            out.inner_facts(line.as_bytes());
            out.reply(250, "End");
        }
        Ok(_) => return super::strange(ready, &asked, out),
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}
