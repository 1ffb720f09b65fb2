//! DELE: remove a file (RFC 959 4.1.3).

use child_ipc::link::worker_broker::{Done, Op, Why};

use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match ready.path(arg, out) {
        Some(path) => ready.ask(Op::Remove(path.clone()), Asked::about("DELE", path, done), out),
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    super::changed(ready, &asked, answer, out, |_, out| out.reply(250, "File removed."))
}
