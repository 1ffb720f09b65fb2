//! Binds the sockets clients connect to. Workers accept on copies; the monitor keeps each, so that no queued connection is lost
//! with a worker.
//!
//! Reads from: the configuration only. An error names setting and remedy.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use ipc::types::ListenerId;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt};

/// Connections that may wait for a worker.
const BACKLOG: i32 = 4096;

/// A listener of the configuration, or one of an earlier one that still has sessions perhaps.
#[derive(Debug)]
pub(crate) struct Listening {
    pub id: ListenerId,
    pub address: SocketAddr,
    /// Connections from proxies may have come in here: it has `proxies`, or had them before a reload.
    pub proxied: bool,
    /// `None` when a reload has closed it.
    pub socket: Option<OwnedFd>,
}

/// A non-blocking TCP socket bound to `address`; of IPv6, to IPv6 alone.
pub(crate) fn bound(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    bind(&socket, &address)?;
    Ok(socket)
}

/// Binds a listener; `place` says where its address was written.
///
/// What is set here goes over to every client accepted, and workers may not set it: no delay for replies, and urgent data
/// in its place in the stream (ABOR, RFC 959 4.1.3).
pub(crate) fn listener(address: SocketAddr, place: &str) -> Result<OwnedFd, String> {
    let socket = bound(address).and_then(|socket| {
        sockopt::set_tcp_nodelay(&socket, true)?;
        sockopt::set_socket_oobinline(&socket, true)?;
        listen(&socket, BACKLOG).map(|()| socket)
    });
    socket.map_err(|errno| {
        let remedy = match errno {
            Errno::ADDRINUSE => "another program listens there; stop it, or choose another port",
            Errno::ADDRNOTAVAIL => {
                "no interface of this machine has that address; choose one of its own, or 0.0.0.0 or [::]"
            }
            Errno::ACCESS => "ports below 1024 need root or CAP_NET_BIND_SERVICE; choose a higher port",
            Errno::AFNOSUPPORT => "this machine has no IPv6; choose an IPv4 address",
            _ => "the address cannot be bound",
        };
        format!("{place}: cannot listen on {address}: {remedy} ({errno})")
    })
}

/// A bound and listening socket for one data connection at a time.
pub(crate) fn passive(ip: IpAddr, port: u16) -> Result<OwnedFd, Errno> {
    let socket = bound(SocketAddr::new(ip, port))?;
    listen(&socket, 8)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_named_with_its_place_and_a_remedy() {
        let taken = listener(([127, 0, 0, 1], 0).into(), "f:1:1").unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&taken).unwrap()).unwrap();
        let error = listener(address, "f:1:1").unwrap_err();
        assert!(error.starts_with(&format!("f:1:1: cannot listen on {address}: another program")), "{error}");
    }

    #[test]
    fn an_address_of_another_machine_is_refused() {
        assert!(listener(([192, 0, 2, 1], 0).into(), "--ftp").unwrap_err().contains("no interface"));
    }
}
