//! Uploads as they are: socket to pipe to file inside the kernel, splice(2).
//!
//! A file takes what it is given before the turn ends, so the pipe is empty between turns and one pipe does for all
//! uploads of a thread. If the file refuses, the pipe is thrown away with what is in it: no byte of one client can
//! come out in another's file. A file that knows no splice gets what is in the pipe by copying, and so the rest.

use std::os::fd::OwnedFd;

use rustix::{
    io::{Errno, read},
    pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice},
};

use super::{Ends, INLINE, Path, Step, Tools, pooled::write_all};

/// Wide, where the kernel allows it (fs.pipe-max-size, fs.pipe-user-pages-soft).
const PIPE_BYTES: usize = 1 << 20;

/// An empty pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

impl Pipe {
    fn new() -> Result<Self, Errno> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Narrower is slower, nothing else.
        let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
        Ok(Pipe { out, into })
    }
}

/// From where the descriptor stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Splice;

impl Path for Splice {
    fn step(&mut self, ends: Ends<'_>, tools: &mut Tools, share: usize, moved: &mut u64) -> Step {
        let pipe = match tools.pipe.take().map_or_else(Pipe::new, Ok) {
            Ok(pipe) => pipe,
            Err(_) if *moved == 0 => return Step::Refused,
            Err(errno) => return Step::File(errno),
        };
        let piece = if share > INLINE { PIPE_BYTES } else { INLINE };
        let mut left = share;
        while left > 0 {
            match splice(ends.data, None, &pipe.into, None, piece, SpliceFlags::MOVE | SpliceFlags::NONBLOCK) {
                Ok(0) => {
                    tools.pipe = Some(pipe);
                    return Step::Done;
                }
                Ok(got) => {
                    *moved += got as u64;
                    left = left.saturating_sub(got);
                    match empty(&pipe, ends, got) {
                        Ok(()) => {}
                        Err((Errno::INVAL, rest)) => {
                            return match copy(&pipe, ends, rest, tools.buffer()) {
                                Ok(()) => Step::Refused,
                                Err(errno) => Step::File(errno),
                            };
                        }
                        Err((errno, _)) => return Step::File(errno),
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => {
                    tools.pipe = Some(pipe);
                    return match errno {
                        Errno::AGAIN => Step::Blocked,
                        Errno::INVAL | Errno::NOSYS if *moved == 0 => Step::Refused,
                        errno => Step::Peer(errno),
                    };
                }
            }
        }
        tools.pipe = Some(pipe);
        Step::More
    }
}

/// Brings all that is in the pipe into the file; if the file refuses, tells how much is left.
fn empty(pipe: &Pipe, ends: Ends<'_>, bytes: usize) -> Result<(), (Errno, usize)> {
    let mut left = bytes;
    while left > 0 {
        match splice(&pipe.out, None, ends.file, None, left, SpliceFlags::MOVE) {
            Ok(0) => return Err((Errno::IO, left)),
            Ok(put) => left = left.saturating_sub(put),
            Err(Errno::INTR) => {}
            Err(errno) => return Err((errno, left)),
        }
    }
    Ok(())
}

/// The same by copying.
fn copy(pipe: &Pipe, ends: Ends<'_>, bytes: usize, buffer: &mut [u8]) -> Result<(), Errno> {
    let mut left = bytes;
    while left > 0 {
        let room = left.min(buffer.len());
        let got = rustix::io::retry_on_intr(|| read(&pipe.out, buffer.get_mut(..room).unwrap_or_default()))?;
        if got == 0 {
            return Err(Errno::IO);
        }
        write_all(ends.file, buffer.get(..got).unwrap_or_default())?;
        left = left.saturating_sub(got);
    }
    Ok(())
}
