//! How much of what was written to a TCP socket the kernel has not sent yet.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, sockopt_impl};

sockopt_impl!(
    /// Asks for what the kernel knows of a connection (tcp(7)).
    TcpInfo,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    Info
);

/// `struct tcp_info` (include/uapi/linux/tcp.h) up to what is wanted of it, which is there since Linux 4.6.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// From `tcpi_state` to `tcpi_segs_in`.
    _before: [u32; 36],
    /// `tcpi_notsent_bytes`.
    not_sent: u32,
}

/// Bytes in the socket that have not been sent for the first time; its end, once shutdown(2) has asked for it, counts as one.
///
/// # Errors
/// Not a TCP socket.
pub fn unsent(socket: impl AsFd) -> io::Result<usize> {
    Ok(getsockopt(&socket, TcpInfo)?.not_sent as usize)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_the_other_end_has_no_room_for_is_unsent_and_so_is_the_end_behind_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        assert_eq!(unsent(&here).unwrap(), 0);
        here.set_nonblocking(true).unwrap();
        while here.write(&[7; 65536]).is_ok() {}
        let before = unsent(&here).unwrap();
        here.shutdown(Shutdown::Write).unwrap();
        assert_eq!(unsent(&here).unwrap(), before + 1);
        assert!(before > 0);
        there.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(unsent(&here).unwrap(), 0);
        assert!(unsent(std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
