//! STAT: of the session (211), or a listing over the control connection, of a directory (212) or a file (213; RFC 959
//! 4.1.3, 4.2).
//!
//! Every line of the listing begins with a space, so none is taken for the last line of the reply.

use child_ipc::{
    link::worker_broker::{Done, Form, Op, Why},
    types::{Blob, VirtPath},
};

use super::list;
use crate::ftp::{
    Context, Order, Out, State,
    data::Via,
    reply::Part,
    state::{Asked, Moving, Phase, Ready, moving},
};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    if arg.is_empty() {
        return session(ready, cx, out);
    }
    let (options, rest) = list::options(arg);
    let Some(path) = list::path(&ready, rest, out) else { return State::Ready(ready) };
    let op = Op::List { path: path.clone(), form: Form::Long, hidden: options.hidden, written: Blob::default() };
    ready.ask(op, Asked::about("STAT", path, done), out)
}

fn session(ready: Ready, cx: &Context<'_>, out: &mut Out) -> State {
    out.first(211, "Caisson");
    out.inner(format!("Connected from {}", cx.peer).as_bytes());
    out.inner(format!("Logged in as {}", ready.vouched().user()).as_bytes());
    out.inner(if ready.text {
        b"TYPE: ASCII, STRU: File, MODE: Stream"
    } else {
        b"TYPE: Image, STRU: File, MODE: Stream"
    });
    out.inner(match ready.via {
        Via::Nothing => b"No data port agreed on",
        Via::Passive => b"Passive data port open",
        Via::Active(_) => b"Active data port given",
    });
    out.reply(211, "End of status");
    State::Ready(ready)
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Listing { bytes, directory }) => {
            out.order(Order::ReadListing(bytes));
            State::Moving(Box::new(Moving::new(ready, Phase::Reading(asked.path, if directory { 212 } else { 213 }))))
        }
        Ok(_) => super::strange(ready, &asked, out),
        Err(why) => {
            moving::refused(&asked, why, out);
            State::Ready(ready)
        }
    }
}

/// The listing has been read.
pub(in crate::ftp) fn listing(ready: Ready, path: &VirtPath, code: u16, text: Option<&[u8]>, out: &mut Out) -> State {
    match text {
        None => out.reply(450, "Too long for STAT; use LIST or MLSD."),
        Some(text) => {
            out.first(code, "Listing:");
            for line in text.split(|&b| b == b'\n') {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if !line.is_empty() {
                    out.inner(line);
                }
            }
            out.reply_parts(code, &[Part::Text("End of "), Part::Shown(path.as_bytes())]);
        }
    }
    State::Ready(ready)
}
