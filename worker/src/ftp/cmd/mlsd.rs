//! MLSD: a listing for programs (RFC 3659 7). No options: the argument is a path.

use child_ipc::link::worker_broker::Form;

use super::list;
use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let facts = ready.facts;
    list::ask("MLSD", ready, arg, Form::Facts(facts), true, out)
}
