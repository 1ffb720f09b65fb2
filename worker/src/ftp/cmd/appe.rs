//! APPE: receive, and write behind what is there (RFC 959 4.1.3).

use child_ipc::link::worker_broker::WriteMode;

use super::stor;
use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    stor::receive("APPE", ready, arg, WriteMode::Append, cx, out)
}
