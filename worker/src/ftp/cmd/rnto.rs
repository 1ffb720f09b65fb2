//! RNTO: the new name of what RNFR named (RFC 959 4.1.3). Whatever becomes of it, the RNFR is spent.

use child_ipc::link::{
    log::{Event as Happened, Level},
    worker_broker::{Done, Op, Why},
};

use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let Some(from) = ready.spend(|noted| noted.renaming.take()) else {
        out.reply(503, "RNFR comes first.");
        return State::Ready(ready);
    };
    match ready.path(arg, out) {
        Some(to) => {
            let op = Op::Rename { from: from.clone(), to: to.clone() };
            let asked = Asked { other: Some(from), ..Asked::about("RNTO", to, done) };
            ready.ask(op, asked, out)
        }
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match (answer, &asked.other) {
        (Ok(_), Some(from)) => {
            out.reply(250, "Renamed.");
            out.log(Level::Info, Happened::Change, format_args!("op=RNTO path=\"{from}\" to=\"{}\"", asked.path));
        }
        (Ok(_), None) => return super::strange(ready, &asked, out),
        (Err(why), _) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}
