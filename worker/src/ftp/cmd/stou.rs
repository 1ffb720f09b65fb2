//! STOU: receive under a name nobody has; 150 tells its path, as RETR takes it (RFC 959 4.1.3, RFC 1123 4.1.2.9).
//!
//! Without argument the name is made up in the working directory; with one, that name is where it starts from.

use child_ipc::link::worker_broker::WriteMode;

use super::{list, rang, stor};
use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    if ready.spend(|noted| std::mem::take(&mut noted.rest)) > 0 {
        out.reply(554, "REST and STOU do not go together.");
        return State::Ready(ready);
    }
    if rang::impossible(&mut ready, "STOU", out) {
        return State::Ready(ready);
    }
    match list::path(&ready, arg, out) {
        Some(path) => stor::open("STOU", ready, path, WriteMode::Unique, out),
        None => State::Ready(ready),
    }
}
