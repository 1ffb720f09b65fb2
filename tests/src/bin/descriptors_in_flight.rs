//! Keeps descriptors on their way between processes: sent and never received, until its standard input ends.
//!
//! usage: descriptors-in-flight COUNT

use std::{
    env,
    error::Error,
    fs::File,
    io::{self, IoSlice, Read},
    mem::MaybeUninit,
    os::{fd::AsFd, unix::net::UnixDatagram},
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Sent with one message; the kernel's limit is 253.
const AT_ONCE: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = env::args().nth(1).ok_or("usage: descriptors-in-flight COUNT")?.parse()?;
    let (from, _to) = UnixDatagram::pair()?;
    let file = File::open("/dev/null")?;
    let files = vec![file.as_fd(); AT_ONCE];
    for _ in 0..count.div_ceil(AT_ONCE) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        sendmsg(&from, &[IoSlice::new(b"x")], &mut control, SendFlags::DONTWAIT)?;
    }
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
