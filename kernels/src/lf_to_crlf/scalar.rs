//! The oracle.

use super::State;
use crate::Converted;

/// Converts `src` into `dst` until one of them is used up.
pub(crate) fn lf_to_crlf(src: &[u8], dst: &mut [u8], state: &mut State) -> Converted {
    let mut done = Converted::default();
    for &byte in src {
        if byte == b'\n' && !state.after_cr {
            let Some(room) = dst.get_mut(done.written..done.written + 2) else { break };
            room.copy_from_slice(b"\r\n");
            done.written += 2;
        } else {
            let Some(room) = dst.get_mut(done.written) else { break };
            *room = byte;
            done.written += 1;
        }
        state.after_cr = byte == b'\r';
        done.read += 1;
    }
    done
}
