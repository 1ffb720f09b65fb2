//! The first step of every child: descriptor 0 becomes the link to its parent, and nothing else is left open.
//!
//! Reads nothing from the link. Trusts: the parent's choice of descriptors 1 and 2 (the log of last resort).

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketType, sockopt};

use sandbox::creds;

use crate::Error;

/// Takes descriptor 0 as the link to the parent and leaves `/dev/null` there.
///
/// Closes every descriptor above 2 but the link, forbids core dumps and tracing by others (`PR_SET_DUMPABLE` 0, `RLIMIT_CORE` 0).
/// Must come before anything that opens a descriptor or starts a thread.
///
/// # Errors
/// [`Error::Refused`] if descriptor 0 is not an `AF_UNIX` `SOCK_SEQPACKET` socket; [`Error::Fault`] if a call fails.
pub fn take_link() -> Result<OwnedFd, Error> {
    creds::forbid_core_dumps()?;
    let stdin = io::stdin();
    let (family, kind) = (sockopt::socket_domain(&stdin), sockopt::socket_type(&stdin));
    if (family, kind) != (Ok(AddressFamily::UNIX), Ok(SocketType::SEQPACKET)) {
        let by_hand = "descriptor 0 is not a link to caissond; this program is started by caissond, not by hand";
        return Err(Error::Refused(by_hand));
    }
    let link = rustix::io::fcntl_dupfd_cloexec(&stdin, 3).map_err(Error::fault("fcntl(F_DUPFD_CLOEXEC)"))?;
    close_all_but(&link)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(Error::fault("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(Error::fault("dup2"))?;
    Ok(link)
}

/// Closes every descriptor above 2 but `kept`. There is one thread, so none is opened meanwhile, and what was left open by the
/// parent is nobody's in this address space.
fn close_all_but(kept: &OwnedFd) -> Result<(), Error> {
    let open = std::fs::read_dir("/proc/self/fd").and_then(|entries| {
        let number = |name: OsString| name.to_str().and_then(|name| name.parse::<RawFd>().ok());
        entries.map(|entry| number(entry?.file_name()).ok_or(io::ErrorKind::InvalidData.into())).collect()
    });
    let open: Vec<RawFd> = open.map_err(Error::fault("read /proc/self/fd"))?;
    for descriptor in open.into_iter().filter(|&open| open > 2 && open != kept.as_raw_fd()) {
        match nix::unistd::close(descriptor) {
            // The one by which this list was read is closed already.
            Ok(()) | Err(nix::Error::EBADF) => {}
            Err(errno) => return Err(Error::fault("close")(errno)),
        }
    }
    Ok(())
}
