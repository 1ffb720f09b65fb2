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
    pub from: u64,
    pub to: u64,
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
            if self.from >= self.to {
                return Step::Done;
            }
            let rest = super::at_hand(self.from, self.to, ends);
            if rest == 0 {
                return Step::Cold;
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

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use child_ipc::link::settings::FtpSettings;
    use proptest::prelude::*;
    use rustix::{
        fs::{MemfdFlags, memfd_create, seek},
        io::{pwrite, read, write},
        net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt::set_socket_send_buffer_size},
    };

    use super::*;

    /// Bytes in which every kind of line end, and every half of one, is frequent.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => Just(b'\r'), 3 => Just(b'\n'), 2 => Just(b'x')];
        (prop::collection::vec(byte, 0..60), 0_usize..600).prop_map(|(pattern, times)| pattern.repeat(times))
    }

    fn tools(chunk: usize) -> Tools {
        Tools { chunk, sendfile: false, splice: false, ..Tools::new(&FtpSettings::default()) }
    }

    fn file(content: &[u8]) -> OwnedFd {
        let file = memfd_create(c"text", MemfdFlags::CLOEXEC).unwrap();
        let mut at = 0;
        while at < content.len() {
            at += pwrite(&file, &content[at..], at as u64).unwrap();
        }
        file
    }

    /// Two ends of a connection with as little room as the kernel gives.
    fn connection() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        for end in [&ours, &theirs] {
            set_socket_send_buffer_size(end, 1).unwrap();
        }
        (ours, theirs)
    }

    /// What goes over the wire, said another way: an LF gets a CR unless there is one in front of it.
    fn on_the_wire(text: &[u8]) -> Vec<u8> {
        let before = std::iter::once(None).chain(text.iter().copied().map(Some));
        let pieces = text.iter().zip(before).flat_map(|(&byte, before)| {
            let added = (byte == b'\n' && before != Some(b'\r')).then_some(b'\r');
            added.into_iter().chain([byte])
        });
        pieces.collect()
    }

    /// What is kept of it: a CR goes where an LF follows.
    fn kept(wire: &[u8]) -> Vec<u8> {
        let next = wire.iter().copied().map(Some).skip(1).chain([None]);
        wire.iter()
            .zip(next)
            .filter(|(byte, next)| !(**byte == b'\r' && *next == Some(b'\n')))
            .map(|(b, _)| *b)
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_download_does_not_depend_on_chunks_shares_or_what_the_socket_takes(
            text in text(), from in 0_usize..9, chunk in 1_usize..9000, share in 1_usize..9000, taken in 1_usize..9000,
        ) {
            let from = from.min(text.len());
            let (file, (ours, theirs)) = (file(&text), connection());
            let (mut out, mut tools) = (Out::new(from as u64, text.len() as u64), tools(chunk));
            let (mut moved, mut wire, mut buffer) = (0, Vec::new(), vec![0; taken]);
            loop {
                let step = out.step(Ends { data: ours.as_fd(), file: file.as_fd(), until: u64::MAX }, &mut tools, share, &mut moved);
                while let Ok(got @ 1..) = read(&theirs, &mut buffer) {
                    wire.extend_from_slice(&buffer[..got]);
                    if step == Step::Blocked {
                        break;
                    }
                }
                match step {
                    Step::Done => break,
                    Step::More | Step::Blocked => {}
                    other => panic!("{other:?}"),
                }
            }
            prop_assert_eq!(&wire, &on_the_wire(&text[from..]));
            prop_assert_eq!(moved, wire.len() as u64);
        }

        #[test]
        fn an_upload_does_not_depend_on_chunks_shares_or_what_the_socket_gives(
            wire in text(), chunk in 1_usize..9000, share in 1_usize..9000, given in 1_usize..9000,
        ) {
            let (file, (ours, theirs)) = (file(b""), connection());
            let (mut into, mut tools, mut moved) = (In::default(), tools(chunk), 0);
            let (mut theirs, mut rest) = (Some(theirs), &wire[..]);
            loop {
                match &theirs {
                    Some(end) if !rest.is_empty() => {
                        let put = write(end, &rest[..rest.len().min(given)]).unwrap_or(0);
                        rest = &rest[put..];
                    }
                    _ => theirs = None,
                }
                match into.step(Ends { data: ours.as_fd(), file: file.as_fd(), until: u64::MAX }, &mut tools, share, &mut moved) {
                    Step::Done => break,
                    Step::More | Step::Blocked => {}
                    other => panic!("{other:?}"),
                }
            }
            prop_assert_eq!(moved, wire.len() as u64);
            let length = seek(&file, rustix::fs::SeekFrom::Current(0)).unwrap();
            let mut stored = vec![0; usize::try_from(length).unwrap()];
            prop_assert_eq!(read_at(file.as_fd(), &mut stored, 0).unwrap_or(0), stored.len());
            prop_assert_eq!(stored, kept(&wire));
        }
    }
}
