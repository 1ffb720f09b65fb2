//! EPSV: a port for the client to connect to, at the address it is connected to (RFC 2428 3, 4).

use std::net::{IpAddr, Ipv4Addr};

use child_ipc::types::Port;

use crate::ftp::{
    Context, Order, Out, State,
    data::Via,
    state::{Moving, Phase, Ready},
};

pub(in crate::ftp) fn run(mut ready: Ready, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    if arg.eq_ignore_ascii_case(b"ALL") {
        ready.only_epsv = true;
        out.reply(200, "Only EPSV from now on.");
        return State::Ready(ready);
    }
    let family = family(cx.peer);
    if !arg.is_empty() && arg != family.as_bytes() {
        if arg.iter().all(u8::is_ascii_digit) {
            wrong_family(cx.peer, out);
        } else {
            out.reply(501, "Use EPSV, EPSV 1, EPSV 2 or EPSV ALL.");
        }
        return State::Ready(ready);
    }
    out.order(Order::Listen { with_address: false });
    State::Moving(Box::new(Moving::new(ready, Phase::Listening { extended: true })))
}

/// A port is there, or none is to be had.
pub(in crate::ftp) fn listening(
    mut ready: Ready,
    extended: bool,
    port: Option<(Port, Option<IpAddr>)>,
    cx: &Context<'_>,
    out: &mut Out,
) -> State {
    ready.via = Via::Nothing;
    let Some((port, local)) = port else {
        out.reply(425, "No passive port is free now; try again.");
        return State::Ready(ready);
    };
    if extended {
        out.reply_fmt(229, format_args!("Entering Extended Passive Mode (|||{}|)", port.get()));
        ready.via = Via::Passive;
        return State::Ready(ready);
    }
    match cx.passive_address().or_else(|| local.and_then(as_v4)) {
        Some(address) => {
            let [a, b, c, d] = address.octets();
            let [high, low] = port.get().to_be_bytes();
            out.reply_fmt(227, format_args!("Entering Passive Mode ({a},{b},{c},{d},{high},{low})"));
            ready.via = Via::Passive;
        }
        None => {
            out.order(Order::Unlisten);
            out.reply(425, "No address for PASV; use EPSV.");
        }
    }
    State::Ready(ready)
}

/// The number of the peer's address family (RFC 2428 2).
pub(in crate::ftp) fn family(peer: IpAddr) -> &'static str {
    match peer {
        IpAddr::V4(_) => "1",
        IpAddr::V6(_) => "2",
    }
}

/// RFC 2428 2: the families that would do, in parentheses.
pub(in crate::ftp) fn wrong_family(peer: IpAddr, out: &mut Out) {
    out.reply_fmt(522, format_args!("Network protocol not supported, use ({})", family(peer)));
}

fn as_v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address.to_canonical() {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(_) => None,
    }
}
