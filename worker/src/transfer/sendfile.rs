//! Downloads as they are: file to socket inside the kernel, sendfile(2).

use rustix::{fs::sendfile, io::Errno};

use super::{Ends, Path, Step, Tools};

/// The bytes `from` to `to` of the file; `from` moves on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sendfile {
    pub from: u64,
    pub to: u64,
}

impl Path for Sendfile {
    fn step(&mut self, ends: Ends<'_>, _tools: &mut Tools, share: usize, moved: &mut u64) -> Step {
        let mut left = share;
        if *moved == 0 && self.from < self.to {
            // Full segments only: the end of the connection, which follows the last byte, pulls the cork (tcp(7)) and
            // goes out with it.
            let _ = rustix::net::sockopt::set_tcp_cork(ends.data, true);
        }
        loop {
            if self.from >= self.to {
                return Step::Done;
            }
            if left == 0 {
                return Step::More;
            }
            let rest = super::at_hand(self.from, self.to, ends);
            if rest == 0 {
                return Step::Cold;
            }
            match sendfile(ends.data, ends.file, Some(&mut self.from), rest.min(left)) {
                Ok(0) => return Step::Shrunk,
                Ok(sent) => {
                    *moved += sent as u64;
                    left = left.saturating_sub(sent);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Step::Blocked,
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if *moved == 0 => return Step::Refused,
                Err(errno @ (Errno::IO | Errno::OVERFLOW | Errno::NOMEM | Errno::STALE)) => return Step::File(errno),
                Err(errno) => return Step::Peer(errno),
            }
        }
    }
}
