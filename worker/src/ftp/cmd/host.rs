//! HOST: the name by which the client found this server (RFC 7151 3). All names lead to the same accounts, so any name
//! is accepted; but only where the RFC allows it, in front of USER.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ftp::{Context, Out, State};

pub(in crate::ftp) fn run(state: State, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match &state {
        State::NeedUser(_) if is_host(arg) => out.reply(220, "Ready; all names lead to the same host here."),
        State::NeedUser(_) => {
            out.reply(501, "Use HOST and a host name, an IPv4 address, or an IPv6 address in brackets.")
        }
        _ => out.reply(503, "HOST comes before USER."),
    }
    state
}

/// RFC 7151 3.1: a domain name, an IPv4 address, or an IPv6 address in brackets.
fn is_host(arg: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(arg) else { return false };
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().is_ok();
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    text.parse::<Ipv4Addr>().is_ok() || (name.len() <= 253 && name.split('.').all(label))
}

#[cfg(test)]
mod tests {
    use super::is_host;

    #[test]
    fn a_host_is_a_name_or_an_address() {
        for good in
            ["ftp.example.com", "ftp.example.com.", "localhost", "192.0.2.1", "[2001:db8::1]", "xn--bcher-kva.de"]
        {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in ["", ".", "a..b", "-a", "a-", "a b", "2001:db8::1", "[192.0.2.1]", "[x]", "a_b\u{e9}", "*.com"] {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
        assert!(!is_host(&[b'a'; 64]));
    }
}
