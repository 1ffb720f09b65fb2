//! Takes what a peer has sent and nobody will read, before its socket is closed.
//!
//! The kernel resets a connection that is closed with unread bytes, and forgets what it has not sent yet (RFC 1122 4.2.2.13): the
//! client might lose our last words, or the end of a file.

use std::os::fd::AsFd;

use rustix::{
    io::retry_on_intr,
    net::{RecvFlags, recv},
};

/// Bytes that are taken at most: a turn's share. A client that goes on sending is not waited for.
const MOST: usize = 1 << 20;

/// Takes what is there, without waiting, and without looking: of TCP, `MSG_TRUNC` copies nothing (tcp(7)), so no password is
/// left behind either.
pub fn drain(socket: impl AsFd) {
    let mut room = [0; 16 << 10];
    for _ in 0..MOST / room.len() {
        match retry_on_intr(|| recv(&socket, &mut room, RecvFlags::DONTWAIT | RecvFlags::TRUNC)) {
            // Less than was asked for: that was all.
            Ok((_, got)) if got >= room.len() => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[test]
    fn a_client_that_has_said_much_behind_gets_our_last_words_and_no_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut ours, _) = listener.accept().unwrap();
        client.write_all(&[1; 60_000]).unwrap();
        // All of it has come.
        ours.peek(&mut [0; 60_000]).unwrap();
        ours.write_all(b"last words").unwrap();
        drain(&ours);
        drop(ours);
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"last words");
        assert!(client.take_error().unwrap().is_none(), "reset");
    }
}
