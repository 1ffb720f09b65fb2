//! NLST: names only, for programs (RFC 959 4.1.3). Options are read as in LIST.
//! Each name begins with the path as the client wrote it, so that RETR takes it as it is (RFC 1123 4.1.2.7).

use child_ipc::link::worker_broker::Form;

use super::list;
use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let (options, rest) = list::options(arg);
    list::ask("NLST", ready, rest, Form::Names, options.hidden, out)
}
