//! QUIT: good-bye (RFC 959 4.1.1). Sent during a transfer it waits in the queue, so the transfer's reply comes first.

use crate::ftp::{Context, Order, Out, State};

pub(in crate::ftp) fn run(_state: State, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(221, "Good-bye.");
    out.order(Order::Close);
    State::Closing
}
