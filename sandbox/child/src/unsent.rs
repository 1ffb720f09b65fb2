//! How much of what was written to a TCP socket the kernel has not sent yet: no library wraps this question.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// include/uapi/linux/sockios.h: `SIOCOUTQNSD`.
pub(crate) const OUTQNSD: u64 = 0x894b;

/// Bytes in the socket that have not been sent for the first time; its end, once shutdown(2) has asked for it, counts as one.
///
/// # Errors
/// Not a TCP socket that is or was connected.
pub fn unsent(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: this request writes one int to where its argument points, and that outlives the call.
    let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), OUTQNSD, &raw mut bytes) };
    if done == 0 { Ok(usize::try_from(bytes).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
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
