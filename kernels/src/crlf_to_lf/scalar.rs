//! The oracle.

use super::State;
use crate::Converted;

/// Converts `src` into `dst` until one of them is used up.
pub(crate) fn crlf_to_lf(src: &[u8], dst: &mut [u8], state: &mut State) -> Converted {
    let mut done = Converted::default();
    for &byte in src {
        // A CR that waited is written after all, unless this is its LF.
        if state.cr_waits && byte != b'\n' {
            let Some(room) = dst.get_mut(done.written) else { break };
            *room = b'\r';
            done.written += 1;
            state.cr_waits = false;
        }
        if byte != b'\r' {
            let Some(room) = dst.get_mut(done.written) else { break };
            *room = byte;
            done.written += 1;
        }
        state.cr_waits = byte == b'\r';
        done.read += 1;
    }
    done
}
