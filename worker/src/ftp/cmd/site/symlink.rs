//! SITE SYMLINK target link: a symbolic link. Neither path may hold a space, for nothing else could part them.

use child_ipc::link::worker_broker::{Done, Op, Why};

use super::{super::changed, word};
use crate::ftp::{
    Context, Out, State,
    state::{Asked, Ready},
};

pub(super) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let (target, link) = word(arg);
    if target.is_empty() || link.is_empty() || link.contains(&b' ') {
        out.reply(501, "Use SITE SYMLINK target link, without spaces in either.");
        return State::Ready(ready);
    }
    let paths = ready.path(target, out).and_then(|target| Some((target, ready.path(link, out)?)));
    match paths {
        Some((target, link)) => {
            let op = Op::Symlink { target, link: link.clone() };
            ready.ask(op, Asked::about("SYMLINK", link, done), out)
        }
        None => State::Ready(ready),
    }
}

fn done(ready: Ready, asked: Asked, answer: Result<Done, Why>, _cx: &Context<'_>, out: &mut Out) -> State {
    changed(ready, &asked, answer, out, |_, out| out.reply(200, "Link made."))
}
