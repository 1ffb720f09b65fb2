//! CDUP, XCUP: change to the parent directory; the root is its own (RFC 959 4.1.1, RFC 3659 6).

use super::cwd;
use crate::ftp::{Context, Out, State, state::Ready};

pub(in crate::ftp) fn run(ready: Ready, _arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    match ready.path(b"..", out) {
        Some(path) => cwd::change("CDUP", ready, path, out),
        None => State::Ready(ready),
    }
}
