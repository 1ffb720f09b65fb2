//! SIZE: how many bytes RETR would send (RFC 3659 4). In TYPE A that is not known without reading the file, so it is
//! refused, with a text that says so.

use child_ipc::link::worker_broker::{Done, Kind, Op, Why};

use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match ready.path(arg, out) {
        Some(path) => ready.ask(Op::Stat(path.clone()), Asked::about("SIZE", path, done), out),
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Stat(attrs)) if attrs.kind != Kind::File => out.reply(550, "Not a plain file."),
        Ok(Done::Stat(_)) if ready.text => out.reply(550, "SIZE is not known in ASCII mode; use TYPE I."),
        Ok(Done::Stat(attrs)) => out.reply_fmt(213, format_args!("{}", attrs.size)),
        Ok(_) => return super::strange(ready, &asked, out),
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}
