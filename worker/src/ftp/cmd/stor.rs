//! STOR: receive a file (RFC 959 4.1.3); with REST, go on from that offset (RFC 3659 5).

use child_ipc::{
    link::worker_broker::{Done, Op, Opened, Why, WriteMode},
    types::VirtPath,
};

use super::{rang, rest};
use crate::ftp::{
    Context, Order, Out, State,
    data::Move,
    state::{Asked, Ready, Transfer, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    receive("STOR", ready, arg, WriteMode::Replace, cx, out)
}

/// Asks to write to the file of STOR or APPE. Behind REST both go on from its offset.
pub(in crate::ftp) fn receive(
    verb: &'static str,
    mut ready: Ready,
    arg: &[u8],
    mode: WriteMode,
    cx: &Context<'_>,
    out: &mut Out,
) -> State {
    let from = ready.spend(|noted| std::mem::take(&mut noted.rest));
    if rang::impossible(&mut ready, verb, out) || rest::impossible_in_text(&ready, from, out) {
        return State::Ready(ready);
    }
    let mode = match mode {
        // Until the handshake is over, the client may turn out to be another.
        WriteMode::Replace if cx.shield.private => WriteMode::Kept(from),
        _ if from > 0 && cx.shield.private => WriteMode::Kept(from),
        _ if from > 0 => WriteMode::At(from),
        mode => mode,
    };
    match ready.path(arg, out) {
        Some(path) => open(verb, ready, path, mode, out),
        None => State::Ready(ready),
    }
}

/// Asks to write, and begins to get the data connection.
pub(in crate::ftp) fn open(verb: &'static str, ready: Ready, path: VirtPath, mode: WriteMode, out: &mut Out) -> State {
    let number = if let WriteMode::At(offset) | WriteMode::Kept(offset) = mode { offset } else { 0 };
    let until = if let WriteMode::Kept(offset) = mode { Some(offset) } else { None };
    let asked = Asked { number, until, ..Asked::about(verb, path.clone(), done) };
    let umask = ready.umask;
    ready.ask_with_data(Op::OpenWrite { path, mode, umask }, asked, out)
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Opened(Opened { size, chosen, storage, staged, .. })) => {
            let cut = asked.until.filter(|&until| until < size && staged.is_none());
            let order = Move::Receive { text: ready.text, storage, sync: cx.settings.sync_uploads, cut };
            let transfer = Transfer { verb: asked.verb, path: asked.path, chosen, started: cx.now, file: true, staged };
            moving::begin(ready, transfer, order, out)
        }
        Ok(_) => super::strange(ready, &asked, out),
        Err(Why::Invalid) if asked.number > 0 => {
            out.order(Order::Cut);
            out.reply(554, "REST lies behind the end of the file.");
            State::Ready(ready.without_port())
        }
        Err(why) => moving::nothing_to_move(ready, &asked, why, out),
    }
}
