//! ABOR: stop the transfer (RFC 959 4.1.3).
//!
//! A running transfer has been cut and has had its 426 before this line's turn comes (state/moving.rs, `Abort`); what
//! is left is to give up the data port and to say 226.

use crate::ftp::{Context, Order, Out, State, data::Via, state::Ready};

pub(in crate::ftp) fn run(mut ready: Ready, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    ready.via = Via::Nothing;
    out.order(Order::Unlisten);
    out.reply(226, "No transfer in progress.");
    State::Ready(ready)
}
