//! MKD, XMKD: make a directory; its whole path is told, quotes doubled (RFC 959 4.1.3, appendix II).

use child_ipc::link::worker_broker::{Done, Op, Why};

use crate::ftp::{
    Context, Out, State,
    reply::Part,
    state::{Asked, Ready},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match ready.path(arg, out) {
        Some(path) => {
            let op = Op::MakeDir(path.clone(), ready.umask);
            ready.ask(op, Asked::about("MKD", path, done), out)
        }
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    super::changed(ready, &asked, answer, out, |asked, out| {
        out.reply_parts(257, &[Part::Quoted(asked.path.as_bytes()), Part::Text(" created.")]);
    })
}
