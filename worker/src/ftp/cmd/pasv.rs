//! PASV: a port for the client to connect to, told with its IPv4 address (RFC 959 4.1.2).

use super::port::only_epsv;
use crate::ftp::{
    Context, Order, Out, State,
    state::{Moving, Phase, Ready},
};

pub(in crate::ftp) fn run(ready: Ready, _arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    if only_epsv(&ready, out) {
        return State::Ready(ready);
    }
    if cx.peer.is_ipv6() {
        out.reply(522, "PASV cannot name an IPv6 address, use EPSV (2)");
        return State::Ready(ready);
    }
    out.order(Order::Listen { with_address: cx.passive_address().is_none() });
    State::Moving(Box::new(Moving::new(ready, Phase::Listening { extended: false })))
}
