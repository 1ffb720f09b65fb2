//! FTP TYPE A, sending: local lines end in LF, on the wire in CR LF (RFC 959 §3.1.1.1).
//!
//! What is converted, exactly: an LF with no CR right before it becomes CR LF. Every other byte stays
//! as it is; so an LF that already follows a CR is not given a second CR, and a CR alone is sent
//! alone. A file kept with CR LF lines is therefore sent unchanged (vsftpd does the same, `ascii.c`);
//! the price is that such a file comes back with LF lines.

#[cfg(all(feature = "asm", target_arch = "aarch64"))]
#[allow(unsafe_code, reason = "calls assembly")]
mod aarch64;
mod scalar;
#[cfg(all(feature = "asm", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "calls assembly")]
mod x86_64;

use crate::Converted;
use crate::dispatch::{self, Variant};

/// Signature of every variant.
pub type Run = fn(&[u8], &mut [u8], &mut State) -> Converted;

/// What one chunk of a text tells the next. `State::default()` at the start of each text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The last byte read was CR.
    after_cr: bool,
}

const SCALAR: Variant<Run> = Variant::new("scalar", scalar::lf_to_crlf);

#[cfg(all(feature = "asm", target_arch = "x86_64"))]
pub(crate) const BASELINE: Variant<Run> = x86_64::SSE2;
#[cfg(all(feature = "asm", target_arch = "aarch64"))]
pub(crate) const BASELINE: Variant<Run> = aarch64::NEON;
#[cfg(not(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) const BASELINE: Variant<Run> = SCALAR;

/// Converts `src` into `dst` until one of them is used up. How a text is cut into chunks makes no
/// difference to the result.
///
/// Room for `2 * src.len()` bytes is always enough to read all of `src`. Less is allowed: an LF that
/// needs two bytes waits until there are two. The bytes of `dst` behind
/// [`written`](Converted::written) are left with no meaning.
#[inline]
pub fn lf_to_crlf(src: &[u8], dst: &mut [u8], state: &mut State) -> Converted {
    (dispatch::picked().lf_to_crlf)(src, dst, state)
}

/// Every variant this CPU can run, slowest first, for tests and the bench.
#[must_use]
pub fn variants() -> Vec<Variant<Run>> {
    let scalar = std::iter::once(SCALAR);
    #[cfg(all(feature = "asm", target_arch = "x86_64"))]
    let all = scalar.chain([x86_64::SSE2]).chain(x86_64::avx2());
    #[cfg(all(feature = "asm", target_arch = "aarch64"))]
    let all = scalar.chain([aarch64::NEON]);
    #[cfg(not(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let all = scalar;
    all.collect()
}

/// The oracle for the first byte and the rest, `bulk` for what is between.
///
/// `bulk` is given a slice whose first byte is converted already (it looks whether that was CR) and
/// the room that is left; it converts any number of the bytes after it.
#[cfg(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn around(src: &[u8], dst: &mut [u8], state: &mut State, bulk: impl Fn(&[u8], &mut [u8]) -> Converted) -> Converted {
    let [first, _, ..] = src else { return scalar::lf_to_crlf(src, dst, state) };
    let mut done = scalar::lf_to_crlf(&[*first], dst, state);
    if done.read == 1 {
        let more = bulk(src, &mut dst[done.written..]);
        done.read += more.read;
        done.written += more.written;
        state.after_cr = src[done.read - 1] == b'\r';
    }
    done.and(src, dst, |src, dst| scalar::lf_to_crlf(src, dst, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 2 * text.len()];
        let done = lf_to_crlf(text, &mut out, &mut State::default());
        assert_eq!(done.read, text.len());
        out.truncate(done.written);
        out
    }

    #[test]
    fn lf_becomes_cr_lf_and_everything_else_stays() {
        assert_eq!(whole(b"one\ntwo\n\nend"), b"one\r\ntwo\r\n\r\nend");
        assert_eq!(whole(b"kept\r\nlone\rCR\r\r\n"), b"kept\r\nlone\rCR\r\r\n");
        assert_eq!(whole(b""), b"");
    }

    #[test]
    fn a_cr_at_the_end_of_a_chunk_is_remembered() {
        let (mut out, mut state) = ([0; 8], State::default());
        assert_eq!(lf_to_crlf(b"a\r", &mut out, &mut state), Converted { read: 2, written: 2 });
        assert_eq!(lf_to_crlf(b"\n\n", &mut out, &mut state), Converted { read: 2, written: 3 });
        assert_eq!(&out[..3], b"\n\r\n");
    }

    #[test]
    fn an_lf_waits_until_both_bytes_fit() {
        let (mut out, mut state) = ([0; 2], State::default());
        assert_eq!(lf_to_crlf(b"a\n", &mut out, &mut state), Converted { read: 1, written: 1 });
        assert_eq!(lf_to_crlf(b"\n", &mut out, &mut state), Converted { read: 1, written: 2 });
        assert_eq!(&out, b"\r\n");
    }
}
