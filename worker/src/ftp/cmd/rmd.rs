//! RMD, XRMD: remove a directory (RFC 959 4.1.3, RFC 1123 4.1.3.1).

use child_ipc::link::worker_broker::{Done, Op, Why};

use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match ready.path(arg, out) {
        Some(path) => ready.ask(Op::RemoveDir(path.clone()), Asked::about("RMD", path, done), out),
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    super::changed(ready, &asked, answer, out, |_, out| out.reply(250, "Directory removed."))
}
