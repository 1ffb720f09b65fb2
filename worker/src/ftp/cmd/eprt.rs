//! EPRT: PORT for every address family (RFC 2428 2).

use std::net::IpAddr;

use super::{epsv::wrong_family, port};
use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    match parse(arg) {
        Some(Ok((address, number))) if address.is_ipv4() == cx.peer.is_ipv4() => {
            port::accept(ready, address, number, cx, out)
        }
        Some(_) => {
            wrong_family(cx.peer, out);
            State::Ready(ready)
        }
        None => {
            out.reply(501, "Use EPRT |family|address|port|.");
            State::Ready(ready)
        }
    }
}

/// A family that is not known.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownFamily;

/// Address and port; the delimiter is any printable character.
pub fn parse(arg: &[u8]) -> Option<Result<(IpAddr, u16), UnknownFamily>> {
    let (delimiter, rest) = arg.split_first().filter(|(d, _)| (33..=126).contains(*d))?;
    let mut fields = rest.split(|b| b == delimiter);
    let (family, address, number) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next() != Some(b"".as_slice()) || fields.next().is_some() {
        return None;
    }
    if family.is_empty() || !family.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if family != b"1" && family != b"2" {
        return Some(Err(UnknownFamily));
    }
    if !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let port = std::str::from_utf8(number).ok()?.parse().ok()?;
    let address: IpAddr = std::str::from_utf8(address).ok()?.parse().ok()?;
    (address.is_ipv4() == (family == b"1")).then_some(Ok((address, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_with_any_delimiter() {
        assert_eq!(parse(b"|1|132.235.1.2|6275|"), Some(Ok(("132.235.1.2".parse().unwrap(), 6275))));
        assert_eq!(parse(b"!2!::1!5282!"), Some(Ok(("::1".parse().unwrap(), 5282))));
        assert_eq!(parse(b"|3|x|1|"), Some(Err(UnknownFamily)));
    }

    #[test]
    fn anything_else_is_no_address() {
        for bad in [
            "",
            "|",
            "|1|::1|5|",
            "|2|1.2.3.4|5|",
            "|1|1.2.3.4|70000|",
            "|1|1.2.3.4|+5|",
            "|1|1.2.3.4|5",
            "|1|1.2.3.4|5||",
            " 1 1.2.3.4 5 ",
            "|1|1.2.3.4||",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
