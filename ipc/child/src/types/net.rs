//! Networks and names of hosts: what settings say about clients, in the form that is compared.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, de};

/// An address, or all addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Why something is no [`Network`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoNetwork {
    /// It is not of the form ADDRESS or ADDRESS/BITS.
    Form,
    /// The address has bits behind the prefix; this is the network it lies in.
    Within(Network),
}

impl Network {
    /// The network of the addresses that share the first `prefix` bits with `address`, whose other bits must be 0. One of IPv4
    /// addresses in IPv6 form is the IPv4 network it is, as its clients are (RFC 4291 2.5.5.2).
    ///
    /// # Errors
    /// When the prefix is longer than an address, or the address has other bits.
    pub fn new(address: IpAddr, prefix: u8) -> Result<Self, NoNetwork> {
        let mapped = match address {
            IpAddr::V6(v6) if prefix >= 96 => v6.to_ipv4_mapped(),
            _ => None,
        };
        let (address, prefix) = mapped.map_or((address, prefix), |v4| (IpAddr::V4(v4), prefix - 96));
        let first = match address {
            IpAddr::V4(v4) if prefix <= 32 => IpAddr::V4((v4.to_bits() & mask(prefix, 32) as u32).into()),
            IpAddr::V6(v6) if prefix <= 128 => IpAddr::V6((v6.to_bits() & mask(prefix, 128)).into()),
            _ => return Err(NoNetwork::Form),
        };
        let network = Network { address: first, prefix };
        if first == address { Ok(network) } else { Err(NoNetwork::Within(network)) }
    }

    /// Leading bits that its addresses share.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether an address is one of its own. An IPv4 address in IPv6 form (RFC 4291 2.5.5.2) is the IPv4 address it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(v4)) => (own.to_bits() ^ v4.to_bits()) & mask(self.prefix, 32) as u32 == 0,
            (IpAddr::V6(own), IpAddr::V6(v6)) => (own.to_bits() ^ v6.to_bits()) & mask(self.prefix, 128) == 0,
            _ => false,
        }
    }
}

/// The first `prefix` of `bits` bits, at the low end.
fn mask(prefix: u8, bits: u8) -> u128 {
    let behind = u32::from(bits.saturating_sub(prefix));
    let all = u128::MAX >> (128 - u32::from(bits.min(128)));
    all & u128::MAX.checked_shl(behind).unwrap_or(0)
}

impl FromStr for Network {
    type Err = NoNetwork;
    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| NoNetwork::Form)?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(all), |prefix| match prefix.bytes().all(|b| b.is_ascii_digit()) {
            true => prefix.parse().map_err(|_| NoNetwork::Form),
            false => Err(NoNetwork::Form),
        })?;
        Network::new(address, prefix)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (address, prefix) = Deserialize::deserialize(from)?;
        Network::new(address, prefix).map_err(|_| de::Error::custom("not a network"))
    }
}

/// A name that HOST may give (RFC 7151 3.1): a domain name in lower case without a dot at its end, an IPv4 address, or an
/// IPv6 address in brackets. Names of the same host are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostName(Box<str>);

impl HostName {
    /// Longest name in bytes (RFC 1035 2.3.4, without the lengths of the ends).
    pub const MAX: usize = 253;

    /// `None` when the bytes are no such name.
    pub fn new(name: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(name).ok()?;
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return inner.parse::<Ipv6Addr>().ok().map(|v6| HostName(format!("[{v6}]").into()));
        }
        if let Ok(v4) = text.parse::<Ipv4Addr>() {
            return Some(HostName(v4.to_string().into()));
        }
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let name = text.strip_suffix('.').unwrap_or(text);
        (name.len() <= Self::MAX && name.split('.').all(label)).then(|| HostName(name.to_ascii_lowercase().into()))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(from)?;
        let name = HostName::new(text.as_bytes()).filter(|name| &*name.0 == text);
        name.ok_or_else(|| de::Error::custom("not a host name in its one form"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        assert!(network("192.0.2.0/24").contains(ip("192.0.2.255")));
        assert!(!network("192.0.2.0/24").contains(ip("192.0.3.0")));
        assert!(network("192.0.2.7").contains(ip("192.0.2.7")) && !network("192.0.2.7").contains(ip("192.0.2.6")));
        assert!(network("0.0.0.0/0").contains(ip("203.0.113.9")) && !network("0.0.0.0/0").contains(ip("::1")));
        assert!(network("10.0.0.0/8").contains(ip("::ffff:10.1.2.3")));
        for mapped in ["::ffff:10.0.0.0/104", "::ffff:10.1.2.3", "::ffff:0:0/96"] {
            assert!(
                network(mapped).contains(ip("10.1.2.3")) && network(mapped).contains(ip("::ffff:10.1.2.3")),
                "{mapped}"
            );
        }
        assert!(!network("::ffff:10.0.0.0/104").contains(ip("11.1.2.3")));
        assert!(network("2001:db8::/33").contains(ip("2001:db8:7fff::1")));
        assert!(!network("2001:db8::/33").contains(ip("2001:db8:8000::1")));
        assert!(network("::/0").contains(ip("2001:db8::1")) && !network("::/0").contains(ip("192.0.2.1")));
        assert!(network("::1").contains(ip("::1")) && !network("::1").contains(ip("::2")));
    }

    #[test]
    fn bits_behind_the_prefix_are_refused_with_the_network_that_is_meant() {
        assert_eq!("10.0.0.5/8".parse::<Network>(), Err(NoNetwork::Within(network("10.0.0.0/8"))));
        assert_eq!(network("2001:db8::/32").to_string(), "2001:db8::/32");
    }

    #[test]
    fn anything_else_is_no_network() {
        for bad in
            ["", "/", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/+8", "10.0.0.0/8/8", "a/8", "[::1]"]
        {
            assert_eq!(bad.parse::<Network>(), Err(NoNetwork::Form), "{bad}");
        }
    }

    #[test]
    fn what_is_no_network_is_not_decoded() {
        let bytes = |address: &str, prefix: u8| postcard::to_stdvec(&(ip(address), prefix)).unwrap();
        assert_eq!(postcard::from_bytes(&bytes("10.0.0.0", 8)), Ok(network("10.0.0.0/8")));
        assert!(postcard::from_bytes::<Network>(&bytes("10.0.0.0", 33)).is_err());
        assert!(postcard::from_bytes::<Network>(&bytes("10.0.0.1", 8)).is_err());
    }

    fn name(text: &str) -> HostName {
        HostName::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_has_one_form() {
        for (written, form) in [
            ("ftp.example.com", "ftp.example.com"),
            ("FTP.Example.com.", "ftp.example.com"),
            ("localhost", "localhost"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:DB8:0::1]", "[2001:db8::1]"),
            ("xn--bcher-kva.de", "xn--bcher-kva.de"),
        ] {
            assert_eq!(name(written).to_string(), form);
            assert_eq!(postcard::from_bytes(&postcard::to_stdvec(form).unwrap()), Ok(name(written)));
        }
        for bad in ["", ".", "a..b", "-a", "a-", "a b", "2001:db8::1", "[192.0.2.1]", "[x]", "a_b\u{e9}", "*.com"] {
            assert_eq!(HostName::new(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!((HostName::new(&[b'a'; 64]), HostName::new(b"\xff")), (None, None));
    }

    #[test]
    fn a_host_in_another_form_is_not_decoded() {
        for bad in ["FTP.example.com", "a.", "", "a b", "[2001:DB8::1]"] {
            assert!(postcard::from_bytes::<HostName>(&postcard::to_stdvec(bad).unwrap()).is_err(), "{bad}");
        }
    }
}
