//! HASH: the sum of a file, or of the bytes of RANG (draft-bryan-ftpext-hash 3), by the algorithm of OPTS HASH.
//!
//! A sum tells what is in a file, so it takes the permission to read it.

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::xsum;
use crate::ftp::{
    Context, Out, State,
    reply::Part,
    state::{Asked, Ready, Worked, moving},
};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let range = ready.spend(|noted| {
        noted.rest = 0;
        noted.range.take()
    });
    let (number, until) = range.map_or((0, None), |(from, behind)| (from, Some(behind)));
    match ready.path(arg, out) {
        Some(path) => {
            let algorithm = ready.algorithm;
            let asked = Asked { number, until, algorithm, ..Asked::about("HASH", path.clone(), done) };
            ready.ask(Op::OpenRead(path), asked, out)
        }
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, mut asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    match answer {
        Ok(Done::Opened(file)) if asked.number > 0 && asked.number >= file.size => {
            out.reply(554, "RANG lies behind the end of the file.");
            State::Ready(ready)
        }
        Ok(Done::Opened(file)) => {
            asked.until = Some(asked.until.map_or(file.size, |behind| behind.min(file.size)));
            xsum::begin(ready, asked, file.storage.device, summed, out)
        }
        Ok(_) => super::strange(ready, &asked, out),
        Err(why) => {
            match why {
                // The draft's own codes (3.5).
                Why::Denied => out.reply(552, "Permission denied."),
                Why::IsDirectory => out.reply(553, "A directory has no hash."),
                why => moving::refused(&asked, why, out),
            }
            State::Ready(ready)
        }
    }
}

fn summed(ready: Ready, asked: Asked, sum: Worked, _cx: &Context<'_>, out: &mut Out) -> State {
    match sum {
        Ok(sum) => {
            let last = asked.until.unwrap_or(0).saturating_sub(1).max(asked.number);
            let text = format!("{} {}-{last} {} ", asked.algorithm.name(), asked.number, xsum::hex(&sum));
            out.reply_parts(213, &[Part::Text(&text), Part::Shown(asked.path.as_bytes())]);
        }
        Err(how) => moving::file_failed(how, "there is no hash", out),
    }
    State::Ready(ready)
}
