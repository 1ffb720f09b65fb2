//! ADAT, MIC, CONF, ENC: of RFC 2228, for mechanisms that exchange data over the control connection. TLS does not (RFC 4217 3),
//! so they are answered as before a successful AUTH, whatever their arguments, before and after login.

use crate::ftp::{Context, Out, State};

/// ADAT, MIC, CONF, ENC: only behind a security data exchange.
pub(in crate::ftp) fn behind_auth(state: State, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(503, "Only with a mechanism that needs it.");
    state
}
