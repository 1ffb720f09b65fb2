//! PBSZ: with TLS there is no buffer to agree on, so it is 0 whatever the client says (RFC 4217 8, RFC 2228 3).

use crate::ftp::{Context, Order, Out, Shield, State};

pub(in crate::ftp) fn run(state: State, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    // RFC 2228 8: a 32-bit number.
    let size = std::str::from_utf8(arg).ok().and_then(|text| text.parse::<u32>().ok());
    match size {
        _ if !cx.shield.on => out.reply(503, "AUTH comes first."),
        None => out.reply(501, "Use PBSZ 0."),
        Some(size) => {
            out.reply(200, if size == 0 { "No buffer is needed." } else { "PBSZ=0" });
            out.order(Order::Shield(Shield { sized: true, ..cx.shield }));
        }
    }
    state
}
