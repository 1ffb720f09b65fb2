//! AUTH: the control connection goes on under TLS (RFC 2228 3, RFC 4217 4).
//!
//! Only before a login, and a name that was given is forgotten: who logs in does so under TLS from the first word. Whether
//! a client says TLS or SSL, what it speaks then is agreed on by the handshake.

use crate::ftp::{Context, Order, Out, State, state::NeedUser};

pub(in crate::ftp) fn run(state: State, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    let known = [&b"TLS"[..], b"TLS-C", b"SSL"].iter().any(|name| arg.eq_ignore_ascii_case(name));
    let refused = match &state {
        _ if cx.shield.on => (503, "TLS is on already."),
        _ if arg.is_empty() => (501, "AUTH needs the name of a mechanism."),
        _ if !cx.shield.possible => (504, "No security mechanism is offered."),
        State::Ready(_) => (503, "AUTH comes before USER."),
        _ if !known => (504, "Only AUTH TLS is known."),
        _ if cx.shield.busy => (431, "Too many begin with TLS now; try again."),
        _ => {
            out.reply(234, "Begin with TLS.");
            out.order(Order::Secure);
            return State::NeedUser(NeedUser { failures: state.failures(), text: state.text() });
        }
    };
    out.reply(refused.0, refused.1);
    state
}
