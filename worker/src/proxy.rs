//! The header by which a proxy says on whose behalf it connects: PROXY protocol, versions 1 (text) and 2 (binary).
//!
//! The specification is HAProxy's doc/proxy-protocol.txt, "The PROXY protocol, versions 1 & 2"; sections are its own.
//! Reads from: whoever connects from a proxy's address (hostile). Pure: bytes in, verdict out.
//! Not here: whose headers are read, and how long one is waited for (lobby.rs).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest header: a version 2 header with all that goes into one segment of the smallest MSS.
pub const LONGEST: usize = 536;
/// Longest line of version 1, CR LF included (2.1).
const LONGEST_LINE: usize = 107;
/// How version 2 begins (2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// How version 1 begins.
const WORD: &[u8] = b"PROXY ";

/// Where the client is, and where it has connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The client's end, never an IPv4 address in IPv6 form.
    pub source: SocketAddr,
    /// The proxy's end, the same.
    pub destination: SocketAddr,
}

/// What the bytes of a connection begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// A header so far; more of it must come.
    Part,
    /// A whole header.
    Whole {
        /// Its length in bytes; what is behind it is the client's.
        length: usize,
        /// `None`: the proxy's own connection, or a client without addresses (LOCAL, UNKNOWN and their like). The
        /// addresses of the connection itself count then.
        ends: Option<Ends>,
    },
    /// No header, whatever comes; why, for the log.
    Wrong(&'static str),
}

/// Reads the header at the beginning of `bytes`: decided once there are [`LONGEST`] of them.
pub fn parse(bytes: &[u8]) -> Header {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(byte, expected)| byte == expected);
    if begins(SIGNATURE) {
        binary(bytes)
    } else if begins(WORD) {
        text(bytes)
    } else {
        Header::Wrong("no PROXY header")
    }
}

/// Version 1 (2.1).
fn text(bytes: &[u8]) -> Header {
    let line = bytes.get(..LONGEST_LINE).unwrap_or(bytes);
    let Some(end) = line.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < LONGEST_LINE { Header::Part } else { Header::Wrong("PROXY line too long") };
    };
    let line = line.get(WORD.len()..end).and_then(|words| std::str::from_utf8(words).ok()).unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let ends = match words[..] {
        // Whatever stands behind it is to be ignored.
        ["UNKNOWN", ..] => None,
        ["TCP4", source, destination, from, to] => {
            let ip = |text: &str| text.parse::<Ipv4Addr>().ok().map(IpAddr::V4);
            Some(ends(ip(source), ip(destination), number(from), number(to)))
        }
        ["TCP6", source, destination, from, to] => {
            let ip = |text: &str| text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
            Some(ends(ip(source), ip(destination), number(from), number(to)))
        }
        _ => Some(None),
    };
    match ends {
        Some(None) => Header::Wrong("PROXY line malformed"),
        ends => Header::Whole { length: end + 2, ends: ends.flatten() },
    }
}

/// A port in decimal, without zeros in front.
fn number(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| digits)
}

/// Version 2 (2.2). Additional fields (2.2.1: TLVs) are skipped.
fn binary(bytes: &[u8]) -> Header {
    let Some(&[version, family, high, low]) = bytes.get(12..16).and_then(|fixed| fixed.first_chunk()) else {
        return Header::Part;
    };
    let length = 16 + usize::from(u16::from_be_bytes([high, low]));
    if length > LONGEST {
        return Header::Wrong("PROXY header too long");
    }
    if !matches!(version, 0x20 | 0x21) {
        return Header::Wrong("PROXY header of another version, or with an unknown command");
    }
    // Every family with every transport, as far as there are any (0x0_ to 0x3_, 0x_0 to 0x_2).
    if version == 0x21 && (family >> 4 > 3 || family & 15 > 2) {
        return Header::Wrong("PROXY header of an unknown family");
    }
    let Some(body) = bytes.get(16..length) else { return Header::Part };
    let ends = match (version, family) {
        (0x21, 0x11) => Some(fixed_ends::<4>(body)),
        (0x21, 0x21) => Some(fixed_ends::<16>(body)),
        // LOCAL, or a client without an IP address, or without TCP: "falls back to the UNSPEC mode".
        _ => None,
    };
    match ends {
        Some(None) => Header::Wrong("PROXY header too short for its addresses"),
        ends => Header::Whole { length, ends: ends.flatten() },
    }
}

/// Two addresses of `N` bytes, two ports.
fn fixed_ends<const N: usize>(body: &[u8]) -> Option<Ends>
where
    IpAddr: From<[u8; N]>,
{
    let (source, rest) = body.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let (from, rest) = rest.split_first_chunk::<2>()?;
    let to = rest.first_chunk::<2>()?;
    let port = |bytes: &[u8; 2]| Some(u16::from_be_bytes(*bytes));
    ends(Some((*source).into()), Some((*destination).into()), port(from), port(to))
}

fn ends(source: Option<IpAddr>, destination: Option<IpAddr>, from: Option<u16>, to: Option<u16>) -> Option<Ends> {
    let end = |ip: IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
    Some(Ends { source: end(source?, from?), destination: end(destination?, to?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(length: usize, source: &str, destination: &str) -> Header {
        let end = |text: &str| text.parse().unwrap();
        Header::Whole { length, ends: Some(Ends { source: end(source), destination: end(destination) }) }
    }

    fn own(length: usize) -> Header {
        Header::Whole { length, ends: None }
    }

    fn v2(version: u8, family: u8, body: &[u8]) -> Vec<u8> {
        [&SIGNATURE[..], &[version, family], &(body.len() as u16).to_be_bytes(), body].concat()
    }

    const V4: [u8; 12] = [192, 168, 0, 1, 192, 168, 0, 11, 0xdc, 4, 1, 0xbb];

    fn v6() -> Vec<u8> {
        let ip = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        [&ip("2001:db8::7")[..], &ip("2001:db8::1"), &[0x10, 0, 0, 21]].concat()
    }

    #[test]
    fn the_line_of_the_specification_is_read() {
        let line = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\nGET / HTTP/1.1\r\n";
        assert_eq!(parse(line), whole(47, "192.168.0.1:56324", "192.168.0.11:443"));
    }

    #[test]
    fn the_longest_lines_of_the_specification_are_read() {
        let ip = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        let v4 = b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n";
        assert_eq!((v4.len(), parse(v4)), (56, whole(56, "255.255.255.255:65535", "255.255.255.255:65535")));
        let v6 = format!("PROXY TCP6 {ip} {ip} 65535 65535\r\n");
        let end = format!("[{ip}]:65535");
        assert_eq!((v6.len(), parse(v6.as_bytes())), (104, whole(104, &end, &end)));
        let unknown = format!("PROXY UNKNOWN {ip} {ip} 65535 65535\r\n");
        assert_eq!((unknown.len(), parse(unknown.as_bytes())), (107, own(107)));
        assert_eq!(parse(b"PROXY UNKNOWN\r\n"), own(15));
        assert_eq!(
            parse(format!("PROXY UNKNOWN {ip} {ip} 65535 655350\r\n").as_bytes()),
            Header::Wrong("PROXY line too long")
        );
    }

    #[test]
    fn a_line_that_does_not_match_exactly_is_wrong() {
        for bad in [
            "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
            "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
            "PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY UNKNOWNS\r\n",
            "PROXY \r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n\r\n",
            "PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 \u{b2}\r\n",
        ] {
            assert_eq!(parse(bad.as_bytes()), Header::Wrong("PROXY line malformed"), "{bad:?}");
        }
        for bad in ["USER alice\r\n", "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY\r\n", "\0", "\r\n\r\n\r\n"] {
            assert_eq!(parse(bad.as_bytes()), Header::Wrong("no PROXY header"), "{bad:?}");
        }
    }

    #[test]
    fn headers_of_version_2_are_read() {
        let v4 = v2(0x21, 0x11, &V4);
        assert_eq!(parse(&[&v4[..], b"USER x\r\n"].concat()), whole(28, "192.168.0.1:56324", "192.168.0.11:443"));
        assert_eq!(parse(&v2(0x21, 0x21, &v6())), whole(52, "[2001:db8::7]:4096", "[2001:db8::1]:21"));
    }

    #[test]
    fn additional_fields_are_skipped_up_to_the_longest_header() {
        let with = |bytes: usize| v2(0x21, 0x11, &[&V4[..], &vec![4; bytes]].concat());
        assert_eq!(parse(&with(10)), whole(38, "192.168.0.1:56324", "192.168.0.11:443"));
        assert_eq!(parse(&with(LONGEST - 28)), whole(LONGEST, "192.168.0.1:56324", "192.168.0.11:443"));
        assert_eq!(parse(&with(LONGEST - 27)), Header::Wrong("PROXY header too long"));
        assert_eq!(
            parse(&[&SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat()),
            Header::Wrong("PROXY header too long")
        );
    }

    #[test]
    fn a_proxys_own_connection_and_clients_without_addresses_count_as_they_are() {
        assert_eq!(parse(&v2(0x20, 0, b"")), own(16));
        assert_eq!(parse(&v2(0x20, 0xff, &V4)), own(28), "the family is ignored with LOCAL");
        assert_eq!(parse(&v2(0x21, 0, b"")), own(16));
        assert_eq!(parse(&v2(0x21, 0x12, &V4)), own(28));
        assert_eq!(parse(&v2(0x21, 0x31, &[0; 216])), own(232));
    }

    #[test]
    fn what_version_2_does_not_know_is_wrong() {
        for (version, family) in [(0x11, 0x11), (0x31, 0x11), (0x22, 0x11), (0x2f, 0), (0x21, 0x41), (0x21, 0x13)] {
            assert!(matches!(parse(&v2(version, family, &V4)), Header::Wrong(_)), "{version:#x} {family:#x}");
        }
        assert_eq!(parse(&v2(0x21, 0x11, &V4[..11])), Header::Wrong("PROXY header too short for its addresses"));
        assert_eq!(parse(&v2(0x21, 0x21, &v6()[..35])), Header::Wrong("PROXY header too short for its addresses"));
    }

    #[test]
    fn an_ipv4_client_in_ipv6_form_is_the_ipv4_client() {
        let line = b"PROXY TCP6 ::ffff:192.0.2.7 ::ffff:192.0.2.1 4711 21\r\n";
        assert_eq!(parse(line), whole(line.len(), "192.0.2.7:4711", "192.0.2.1:21"));
    }

    #[test]
    fn a_header_is_read_when_its_last_byte_is_there_and_no_earlier() {
        for header in [
            b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n".to_vec(),
            b"PROXY UNKNOWN\r\n".to_vec(),
            v2(0x21, 0x11, &V4),
            v2(0x21, 0x21, &[&v6()[..], &[4; 100]].concat()),
            v2(0x20, 0, b""),
        ] {
            for end in 0..header.len() {
                assert_eq!(parse(&header[..end]), Header::Part, "{end} of {}", header.escape_ascii());
            }
            assert!(matches!(parse(&header), Header::Whole { length, .. } if length == header.len()));
        }
    }
}
