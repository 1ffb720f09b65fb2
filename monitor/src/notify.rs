//! sd_notify(3): tells systemd where we are. One datagram; without `NOTIFY_SOCKET`, nothing.

use std::{
    os::{linux::net::SocketAddrExt, unix::ffi::OsStrExt, unix::net::SocketAddr, unix::net::UnixDatagram},
    path::Path,
};

/// Sends one assignment. A failure is not ours to act on: systemd will time out and say so.
pub(crate) fn send(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(Path::new(&name)),
    };
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.set_nonblocking(true);
        let _ = socket.send_to_addr(state.as_bytes(), &address);
    }
}
