//! PORT: the client waits for a connection at this address and port (RFC 959 4.1.2).
//!
//! The address must be the client's own and the port no privileged one (RFC 2577 3): no bounce. The monitor takes the
//! address from the control connection anyway.

use std::net::{IpAddr, Ipv4Addr};

use child_ipc::types::Port;

use crate::ftp::{Context, Order, Out, State, data::Via, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    match parse(arg) {
        Some((address, port)) => accept(ready, address.into(), port, cx, out),
        None => {
            out.reply(501, "Use PORT h1,h2,h3,h4,p1,p2.");
            State::Ready(ready)
        }
    }
}

/// Six numbers from 0 to 255.
pub fn parse(arg: &[u8]) -> Option<(Ipv4Addr, u16)> {
    let mut numbers = [0; 6];
    let mut fields = arg.split(|&b| b == b',');
    for number in &mut numbers {
        let field = fields.next()?;
        if field.is_empty() || field.len() > 3 || !field.iter().all(u8::is_ascii_digit) {
            return None;
        }
        *number = std::str::from_utf8(field).ok()?.parse().ok()?;
    }
    let [a, b, c, d, high, low] = numbers;
    fields.next().is_none().then_some((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])))
}

/// Takes the address and port of PORT or EPRT, if they are allowed.
pub(in crate::ftp) fn accept(mut ready: Ready, address: IpAddr, port: u16, cx: &Context<'_>, out: &mut Out) -> State {
    if only_epsv(&ready, out) {
        return State::Ready(ready);
    }
    match Port::new(port) {
        _ if cx.proxied => out.reply(502, "Active mode is not possible behind a proxy; use EPSV or PASV."),
        _ if !cx.settings.active => out.reply(502, "Active mode is off here; use EPSV or PASV."),
        _ if address.to_canonical() != cx.peer => out.reply(501, "The address must be your own."),
        Some(port) if port.get() >= 1024 => {
            out.order(Order::Unlisten);
            ready.via = Via::Active(port);
            out.reply(200, "Port taken.");
        }
        _ => out.reply(501, "The port must be 1024 or above."),
    }
    State::Ready(ready)
}

/// Refuses what EPSV ALL has ruled out (RFC 2428 4).
pub(in crate::ftp) fn only_epsv(ready: &Ready, out: &mut Out) -> bool {
    if ready.only_epsv {
        out.reply(503, "EPSV ALL was said: only EPSV from now on.");
    }
    ready.only_epsv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_numbers_and_nothing_else() {
        assert_eq!(parse(b"127,0,0,1,4,1"), Some((Ipv4Addr::LOCALHOST, 1025)));
        for bad in [
            "",
            "1,2,3,4,5",
            "1,2,3,4,5,6,7",
            "1,2,3,4,5,256",
            "1,2,3,4,5,-1",
            "1,2,3,4,5,+1",
            "1,,3,4,5,6",
            "a,2,3,4,5,6",
            "1,2,3,4,5,6 ",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
