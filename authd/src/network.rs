//! What counts as one source. IPv4 addresses mapped into IPv6 (RFC 4291 2.5.5.2) are the IPv4 addresses they are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network that shares one turn in the queue: /24, or /64.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & !0xff).into(),
        IpAddr::V6(v6) => subnet(v6),
    }
}

/// Whoever is behind one address: the IPv4 address, or the /64 of which an IPv6 host has every address.
pub fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => subnet(v6),
    }
}

fn subnet(v6: Ipv6Addr) -> IpAddr {
    Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_network_and_strangers_do_not() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(network(ip("192.0.2.7")), network(ip("::ffff:192.0.2.200")));
        assert_ne!(network(ip("192.0.2.7")), network(ip("192.0.3.7")));
        assert_eq!(network(ip("2001:db8::1")), host(ip("2001:db8::ffff:2")));
        assert_ne!(host(ip("2001:db8:0:1::1")), host(ip("2001:db8::1")));
        assert_ne!(host(ip("192.0.2.7")), host(ip("192.0.2.8")));
    }
}
