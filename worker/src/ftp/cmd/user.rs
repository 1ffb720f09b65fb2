//! USER: who the client says it is (RFC 959 4.1.1).
//!
//! Always 331: whether the account exists is nobody's business. But 232 where the client's certificate is all the account takes
//! (RFC 2228 4). In a session that is logged in it ends that identity at once; nothing of it is left until the next login, and then
//! but TYPE, MODE and STRU: transfer parameters are unchanged.

use child_ipc::types::UserName;

use crate::ftp::{Context, Order, Out, State, state::NeedPass};

pub(in crate::ftp) fn run(state: State, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    if cx.refuses_login(out) {
        return state;
    }
    if arg.is_empty() {
        out.reply(501, "USER needs a name.");
        return state;
    }
    let (failures, text) = (state.failures(), state.text());
    if matches!(state, State::Ready(_)) {
        out.order(Order::Unlisten);
        out.order(Order::Logout);
    }
    NeedPass { user: UserName::new(arg), failures, text }.begin(cx, out)
}
