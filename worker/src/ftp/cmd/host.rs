//! HOST: the name by which the client found this server (RFC 7151 3), in front of USER. The last one counts.
//!
//! It brings another greeting, and is told to authd, which knows the accounts of each host; nothing else depends on it.
//! Without any `[[host]]` all names lead to the same place.

use child_ipc::types::HostName;

use crate::ftp::{Context, Order, Out, State};

pub(in crate::ftp) fn run(state: State, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    if !matches!(state, State::NeedUser(_)) {
        out.reply(503, "HOST comes before USER.");
        return state;
    }
    let Some(name) = HostName::new(arg) else {
        out.reply(501, "Use HOST and a host name, an IPv4 address, or an IPv6 address in brackets.");
        return state;
    };
    if cx.settings.places.hosts.is_empty() {
        out.reply(220, "Ready; all names lead to the same host here.");
        return state;
    }
    let host = cx.settings.places.host(&name);
    match host {
        Some(host) => out.greeting(host.banner.as_ref().unwrap_or(&cx.settings.banner).as_bytes()),
        None => out.reply(504, "No host of that name is here."),
    }
    out.order(Order::Host(host.map(|host| host.name.clone())));
    state
}
