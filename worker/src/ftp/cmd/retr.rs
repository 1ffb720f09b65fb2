//! RETR: send a file (RFC 959 4.1.3), from the offset of REST (RFC 3659 5), or the bytes of RANG.

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::{rang, rest};
use crate::ftp::Order;
use crate::ftp::{
    Context, Out, State,
    data::Move,
    state::{Asked, Ready, Transfer, moving},
};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let (rest, range) = ready.spend(|noted| (std::mem::take(&mut noted.rest), noted.range.take()));
    let (from, until) = range.map_or((rest, None), |(from, until)| (from, Some(until)));
    if rang::impossible_in_text(&ready, range, out) || rest::impossible_in_text(&ready, from, out) {
        return State::Ready(ready);
    }
    match ready.path(arg, out) {
        Some(path) => {
            let asked = Asked { number: from, until, ..Asked::about("RETR", path.clone(), done) };
            ready.ask_with_data(Op::OpenRead(path), asked, out)
        }
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Opened(file)) if asked.number > file.size && asked.until.is_none() => {
            out.order(Order::Cut);
            out.reply(554, "REST lies behind the end of the file.");
            State::Ready(ready.without_port())
        }
        Ok(Done::Opened(file)) => {
            // RANG ends where the file does, and may ask for nothing at all (draft-bryan-ftp-range 4.3).
            let to = asked.until.map_or(file.size, |until| until.min(file.size));
            let (from, storage) = (asked.number.min(to), file.storage);
            let order = Move::Send { from, to, text: ready.text, storage };
            let transfer = Transfer {
                verb: asked.verb,
                path: asked.path,
                chosen: None,
                started: cx.now,
                file: true,
                staged: None,
            };
            moving::begin(ready, transfer, order, out)
        }
        Ok(_) => super::strange(ready, &asked, out),
        Err(why) => moving::nothing_to_move(ready, &asked, why, out),
    }
}
