//! SITE CPFR, CPTO: copy a file inside the account, as ProFTPD's `mod_copy` does. The bytes do not pass the client.
//!
//! What a copy that is cut or fails has written stays, as an upload's does.

use child_ipc::link::{
    log::{Event as Happened, Level},
    worker_broker::{Done, Op, Why},
};

use super::super::strange;
use crate::ftp::{
    Context, Order, Out, State,
    data::Work,
    state::{Asked, Moving, Phase, Ready, Worked, Working, moving},
};

/// CPFR. Opened at once, so that what cannot be copied is refused here and leaves nothing armed.
pub(super) fn from(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ready.spend(|noted| noted.copying.take());
    match ready.path(arg, out) {
        Some(path) => ready.ask(Op::OpenRead(path.clone()), Asked::about("CPFR", path, found), out),
        None => State::Ready(ready),
    }
}

fn found(mut ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(_) => {
            ready.note().copying = Some(asked.path);
            out.reply(350, "SITE CPTO comes next.");
        }
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}

/// CPTO. Whatever becomes of it, the CPFR is spent.
pub(super) fn to(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let Some(from) = ready.spend(|noted| noted.copying.take()) else {
        out.reply(503, "SITE CPFR comes first.");
        return State::Ready(ready);
    };
    match ready.path(arg, out) {
        Some(to) => {
            let op = Op::Copy { from: from.clone(), to: to.clone(), umask: ready.umask };
            ready.ask(op, Asked { other: Some(from), ..Asked::about("CPTO", to, opened) }, out)
        }
        None => State::Ready(ready),
    }
}

fn opened(ready: Ready, mut asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Copying { bytes, devices }) => {
            asked.number = bytes;
            out.order(Order::Work(Work::Copy { bytes, devices }));
            State::Moving(Box::new(Moving::new(ready, Phase::Working(Working { asked, then: copied }))))
        }
        Ok(_) => strange(ready, &asked, out),
        Err(why) => {
            moving::refused(&asked, why, out);
            State::Ready(ready)
        }
    }
}

fn copied(ready: Ready, asked: Asked, result: Worked, _cx: &Context<'_>, out: &mut Out) -> State {
    let Asked { path, number, .. } = &asked;
    match (result, &asked.other) {
        (Ok(_), Some(from)) => {
            out.reply(250, "Copied.");
            out.log(
                Level::Info,
                Happened::Change,
                format_args!("op=CPTO path=\"{from}\" to=\"{path}\" bytes={number}"),
            );
        }
        (Ok(_), None) => return strange(ready, &asked, out),
        (Err(how), _) => {
            moving::file_failed(how, "the copy is not complete", out);
            out.log(Level::Warning, Happened::Change, format_args!("op=CPTO path=\"{path}\" result={how:?}"));
        }
    }
    State::Ready(ready)
}
