//! FTP TYPE A, receiving: lines end in CR LF on the wire, in LF here (RFC 959 §3.1.1.1).
//!
//! What is converted, exactly: a CR with an LF right behind it is left out. Every other byte stays as
//! it is; so an LF alone and a CR alone are kept, and CR CR LF becomes CR LF. Whether a CR at the end
//! of a chunk stays is known only with the next chunk, or with the end: [`State::finish`].

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
#[must_use = "a CR may be waiting in it: `finish`"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// A CR was read and not yet written.
    cr_waits: bool,
}

impl State {
    /// Ends the text. The last byte to write, if the text ended in a CR; fit for a new text after.
    #[must_use = "this byte belongs to the text"]
    pub fn finish(&mut self) -> Option<u8> {
        std::mem::take(&mut self.cr_waits).then_some(b'\r')
    }
}

const SCALAR: Variant<Run> = Variant::new("scalar", scalar::crlf_to_lf);

#[cfg(all(feature = "asm", target_arch = "x86_64"))]
pub(crate) const BASELINE: Variant<Run> = x86_64::SSE2;
#[cfg(all(feature = "asm", target_arch = "aarch64"))]
pub(crate) const BASELINE: Variant<Run> = aarch64::NEON;
#[cfg(not(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) const BASELINE: Variant<Run> = SCALAR;

/// Converts `src` into `dst` until one of them is used up. How a text is cut into chunks makes no
/// difference to the result.
///
/// Room for `src.len() + 1` bytes is always enough to read all of `src`; less is allowed. The bytes
/// of `dst` behind [`written`](Converted::written) are left with no meaning.
#[inline]
pub fn crlf_to_lf(src: &[u8], dst: &mut [u8], state: &mut State) -> Converted {
    (dispatch::picked().crlf_to_lf)(src, dst, state)
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
/// `bulk` converts any number of the first bytes of what it is given, with no CR waiting.
#[cfg(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn around(src: &[u8], dst: &mut [u8], state: &mut State, bulk: impl Fn(&[u8], &mut [u8]) -> Converted) -> Converted {
    let first = usize::from(state.cr_waits).min(src.len());
    let mut done = scalar::crlf_to_lf(&src[..first], dst, state);
    if !state.cr_waits {
        done = done.and(src, dst, bulk);
    }
    done.and(src, dst, |src, dst| scalar::crlf_to_lf(src, dst, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &[u8]) -> Vec<u8> {
        let (mut out, mut state) = (vec![0; text.len() + 1], State::default());
        let done = crlf_to_lf(text, &mut out, &mut state);
        assert_eq!(done.read, text.len());
        out.truncate(done.written);
        out.extend(state.finish());
        out
    }

    #[test]
    fn cr_lf_becomes_lf_and_everything_else_stays() {
        assert_eq!(whole(b"one\r\ntwo\r\n\r\nend"), b"one\ntwo\n\nend");
        assert_eq!(whole(b"lone\rCR, lone\nLF, \r\r\n"), b"lone\rCR, lone\nLF, \r\n");
        assert_eq!(whole(b""), b"");
    }

    #[test]
    fn a_cr_at_the_end_of_a_chunk_waits_for_the_next() {
        let (mut out, mut state) = ([0; 8], State::default());
        assert_eq!(crlf_to_lf(b"a\r", &mut out, &mut state), Converted { read: 2, written: 1 });
        assert_eq!(crlf_to_lf(b"\nb\r", &mut out, &mut state), Converted { read: 3, written: 2 });
        assert_eq!(&out[..2], b"\nb");
        assert_eq!(crlf_to_lf(b"c", &mut out, &mut state), Converted { read: 1, written: 2 });
        assert_eq!(&out[..2], b"\rc");
    }

    #[test]
    fn a_cr_that_ends_the_text_is_given_by_finish_once() {
        assert_eq!(whole(b"end\r"), b"end\r");
        let mut state = State::default();
        let _ = crlf_to_lf(b"\r", &mut [], &mut state);
        assert_eq!(state.finish(), Some(b'\r'));
        assert_eq!(state.finish(), None);
    }
}
