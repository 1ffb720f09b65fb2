//! AUTH, ADAT, PBSZ, PROT, CCC, MIC, CONF, ENC: the framework of RFC 2228 where no security mechanism is offered.
//!
//! AUTH is the door to all others, and knows no mechanism here; so they are answered as before a successful AUTH
//! (RFC 2228 3), whatever their arguments, before and after login.

use crate::ftp::{Context, Out, State};

/// AUTH.
pub(in crate::ftp) fn auth(state: State, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match arg {
        b"" => out.reply(501, "AUTH needs the name of a mechanism."),
        _ => out.reply(504, "No security mechanism is offered."),
    }
    state
}

/// ADAT, PBSZ, PROT, MIC, CONF, ENC: only behind a security data exchange.
pub(in crate::ftp) fn behind_auth(state: State, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(503, "Only after AUTH, which knows no mechanism here.");
    state
}

/// CCC: has to be integrity-protected itself.
pub(in crate::ftp) fn ccc(state: State, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    out.reply(533, "The command channel is in clear already.");
    state
}
