//! TYPE A (RFC 959 3.1.1.1): LF becomes CR LF on its way out, CR LF becomes LF on its way in.

use kernels::{crlf_to_lf, crlf_to_lf as from_net, lf_to_crlf, lf_to_crlf as to_net};
use rustix::io::Errno;

use super::{
    Ends, Path, Step, Tools,
    pooled::{read_at, receive_some, send_some, write_all},
};

/// The bytes `from` to `to` of the file; `from` moves on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Out {
    from: u64,
    to: u64,
    state: lf_to_crlf::State,
    /// The CR of the line end at `from` was sent, its LF was not.
    owes_lf: bool,
}

impl Out {
    pub(super) fn new(from: u64, to: u64) -> Self {
        Out { from, to, state: lf_to_crlf::State::default(), owes_lf: false }
    }

    /// Takes note that the first `sent` bytes of what `source` becomes are on their way.
    fn advance(&mut self, source: &[u8], scratch: &mut [u8], sent: usize) {
        let done = to_net(source, scratch.get_mut(..sent).unwrap_or_default(), &mut self.state);
        self.from += done.read as u64;
        self.owes_lf = done.written < sent;
    }
}

impl Path for Out {
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step {
        let (source, converted) = tools.buffers();
        let mut left = share;
        while left > 0 {
            if self.owes_lf {
                match send_some(ends.data, b"\n") {
                    Ok(_) => {}
                    Err(Errno::AGAIN) => return Step::Blocked,
                    Err(errno) => return Step::Peer(errno),
                }
                *moved += 1;
                (self.owes_lf, self.from, self.state) = (false, self.from + 1, lf_to_crlf::State::default());
            }
            let rest = usize::try_from(self.to.saturating_sub(self.from)).unwrap_or(usize::MAX);
            if rest == 0 {
                return Step::Done;
            }
            let room = rest.min(source.len());
            let got = match read_at(ends.file, source.get_mut(..room).unwrap_or_default(), self.from) {
                Ok(0) => return Step::Shrunk,
                Ok(got) => got,
                Err(errno) => return Step::File(errno),
            };
            let source = source.get(..got).unwrap_or_default();
            let before = self.state;
            let done = to_net(source, converted, &mut self.state);
            let sent = match send_some(ends.data, converted.get(..done.written).unwrap_or_default()) {
                Ok(sent) => sent,
                Err(Errno::AGAIN) => {
                    self.state = before;
                    return Step::Blocked;
                }
                Err(errno) => return Step::Peer(errno),
            };
            *moved += sent as u64;
            left = left.saturating_sub(sent);
            if sent == done.written {
                self.from += done.read as u64;
            } else {
                self.state = before;
                self.advance(source, converted, sent);
            }
        }
        Step::More
    }
}

/// To where the descriptor stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct In {
    state: crlf_to_lf::State,
}

impl Path for In {
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step {
        let (source, converted) = tools.buffers();
        let mut left = share;
        while left > 0 {
            let got = match receive_some(ends.data, source) {
                Ok(0) => {
                    let last = self.state.finish();
                    return match write_all(ends.file, last.as_slice()) {
                        Ok(()) => Step::Done,
                        Err(errno) => Step::File(errno),
                    };
                }
                Ok(got) => got,
                Err(Errno::AGAIN) => return Step::Blocked,
                Err(errno) => return Step::Peer(errno),
            };
            *moved += got as u64;
            left = left.saturating_sub(got);
            let done = from_net(source.get(..got).unwrap_or_default(), converted, &mut self.state);
            if let Err(errno) = write_all(ends.file, converted.get(..done.written).unwrap_or_default()) {
                return Step::File(errno);
            }
        }
        Step::More
    }
}
