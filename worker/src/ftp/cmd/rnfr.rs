//! RNFR: what the next RNTO renames (RFC 959 4.1.3). Asked of the broker at once, so that a name that is not there is
//! refused here and leaves nothing armed.

use child_ipc::link::worker_broker::{Done, Facts, Op, Why};

use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready, moving},
};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ready.spend(|noted| noted.renaming.take());
    match ready.path(arg, out) {
        Some(path) => {
            // Facts, not Stat: of the name itself, for a link that leads nowhere can be renamed too.
            let op = Op::Facts { path: path.clone(), facts: Facts(0) };
            ready.ask(op, Asked::about("RNFR", path, done), out)
        }
        None => State::Ready(ready),
    }
}

fn done(mut ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        // An account that may rename but not list cannot be told what is there; RNTO decides.
        Ok(_) | Err(Why::Denied) => {
            ready.note().renaming = Some(asked.path);
            out.reply(350, "RNTO comes next.");
        }
        Err(why) => moving::refused(&asked, why, out),
    }
    State::Ready(ready)
}
