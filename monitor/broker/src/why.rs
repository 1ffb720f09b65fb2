//! errno → [`Why`], in one place for every operation.

use child_ipc::link::worker_broker::Why;
use rustix::io::Errno;

/// What to tell a client about a failed call.
pub(crate) fn why(errno: Errno) -> Why {
    match errno {
        Errno::NOENT => Why::NotFound,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Why::Denied,
        Errno::EXIST => Why::Exists,
        Errno::NOTDIR => Why::NotDirectory,
        Errno::ISDIR => Why::IsDirectory,
        // open(2): a FIFO without a reader, a socket, a device that is not there.
        Errno::NXIO | Errno::NODEV => Why::NotRegular,
        Errno::NOTEMPTY => Why::NotEmpty,
        Errno::NOSPC | Errno::DQUOT => Why::NoSpace,
        Errno::NAMETOOLONG
        | Errno::LOOP
        | Errno::INVAL
        | Errno::XDEV
        | Errno::MLINK
        | Errno::FBIG
        | Errno::OVERFLOW => Why::Invalid,
        Errno::BUSY | Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::TXTBSY | Errno::INTR => {
            Why::Busy
        }
        other => Why::Io(other.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_a_client_can_do_something_about_has_its_own_answer() {
        for (errno, expected) in [
            (Errno::NOENT, Why::NotFound),
            (Errno::ROFS, Why::Denied),
            (Errno::NXIO, Why::NotRegular),
            (Errno::DQUOT, Why::NoSpace),
            (Errno::LOOP, Why::Invalid),
            (Errno::MFILE, Why::Busy),
            (Errno::IO, Why::Io(5)),
        ] {
            assert_eq!(why(errno), expected);
        }
    }
}
