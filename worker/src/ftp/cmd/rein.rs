//! REIN: back to where the connection began (RFC 959 4.1.1), TYPE included, before any HOST (RFC 7151 3).

use crate::ftp::{Context, Order, Out, State, state::NeedUser};

pub(in crate::ftp) fn run(state: State, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let failures = state.failures();
    out.order(Order::Unlisten);
    out.order(Order::Logout);
    out.order(Order::Host(None));
    out.reply(220, "Ready for a new user.");
    State::NeedUser(NeedUser { failures, ..NeedUser::default() })
}
