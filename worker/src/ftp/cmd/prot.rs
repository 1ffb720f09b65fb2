//! PROT: whether data connections are in clear (C) or under TLS (P); TLS knows nothing in between (RFC 4217 9, RFC 2228 3).

use child_ipc::link::settings::Require;

use crate::ftp::{Context, Order, Out, Shield, State};

pub(in crate::ftp) fn run(state: State, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    match arg.to_ascii_uppercase().as_slice() {
        _ if !cx.shield.on => out.reply(503, "AUTH comes first."),
        _ if !cx.shield.sized => out.reply(503, "PBSZ 0 comes first."),
        b"C" if cx.require() == Require::Data => out.reply(534, "Data connections have to be under TLS."),
        b"C" => {
            out.reply(200, "Data connections are in clear.");
            out.order(Order::Shield(Shield { private: false, ..cx.shield }));
        }
        b"P" => {
            out.reply(200, "Data connections are under TLS.");
            out.order(Order::Shield(Shield { private: true, ..cx.shield }));
        }
        b"S" | b"E" => out.reply(536, "TLS knows C and P alone."),
        _ => out.reply(504, "Use PROT C or PROT P."),
    }
    state
}
