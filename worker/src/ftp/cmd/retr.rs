//! RETR: send a file (RFC 959 4.1.3), from the offset of REST (RFC 3659 5).

use ipc::link::worker_broker::{Done, Op, Why};

use super::rest;
use crate::ftp::Order;
use crate::ftp::{
    Context, Out, State,
    data::Move,
    state::{Asked, Ready, Transfer, moving},
};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let from = std::mem::take(&mut ready.rest);
    if rest::impossible_in_text(&ready, from, out) {
        return State::Ready(ready);
    }
    match ready.path(arg, out) {
        Some(path) => {
            let asked = Asked { number: from, ..Asked::about("RETR", path.clone(), done) };
            ready.ask_with_data(Op::OpenRead(path), asked, out)
        }
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Opened(file)) if asked.number > file.size => {
            out.order(Order::Cut);
            out.reply(554, "REST lies behind the end of the file.");
            State::Ready(ready.without_port())
        }
        Ok(Done::Opened(file)) => {
            let order = Move::Send { from: asked.number, to: file.size, text: ready.text };
            let transfer = Transfer { verb: asked.verb, path: asked.path, name: None, started: cx.now, file: true };
            moving::begin(ready, transfer, order, out)
        }
        Ok(_) => super::strange(ready, &asked, out),
        Err(why) => moving::nothing_to_move(ready, &asked, why, out),
    }
}
