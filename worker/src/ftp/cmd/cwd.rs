//! CWD, XCWD: change the working directory (RFC 959 4.1.1).

use child_ipc::{
    link::worker_broker::{Done, Op, Why},
    types::VirtPath,
};

use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match ready.path(arg, out) {
        Some(path) => change("CWD", ready, path, out),
        None => State::Ready(ready),
    }
}

/// Asks whether one may go there.
pub(in crate::ftp) fn change(verb: &'static str, ready: Ready, path: VirtPath, out: &mut Out) -> State {
    ready.ask(Op::ChangeDir(path.clone()), Asked::about(verb, path, done), out)
}

fn done(mut ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(_) => {
            ready.cwd = asked.path;
            out.reply(250, "Directory changed.");
        }
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}
