//! REIN: back to where the connection began (RFC 959 4.1.1), TYPE included, before any HOST (RFC 7151 3).
//!
//! Under TLS it would have to end that as well (RFC 4217 11), and there is no way back to a control connection in clear.

use crate::ftp::{Context, Order, Out, State, state::NeedUser};

pub(in crate::ftp) fn run(state: State, _arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    if cx.shield.on {
        out.reply(502, "Under TLS, connect anew instead.");
        return state;
    }
    let failures = state.failures();
    out.order(Order::Unlisten);
    out.order(Order::Logout);
    out.order(Order::Host(None));
    out.reply(220, "Ready for a new user.");
    State::NeedUser(NeedUser { failures, ..NeedUser::default() })
}
