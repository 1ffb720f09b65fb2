//! Where CR LF first occurs: the end of a command or reply as RFC 959 writes it.

#[cfg(all(feature = "asm", target_arch = "aarch64"))]
#[allow(unsafe_code, reason = "calls assembly")]
mod aarch64;
mod scalar;
#[cfg(all(feature = "asm", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "calls assembly")]
mod x86_64;

use crate::dispatch::{self, Variant};

/// Signature of every variant.
pub type Run = fn(&[u8]) -> Option<usize>;

const SCALAR: Variant<Run> = Variant::new("scalar", scalar::find_crlf);

#[cfg(all(feature = "asm", target_arch = "x86_64"))]
pub(crate) const BASELINE: Variant<Run> = x86_64::SSE2;
#[cfg(all(feature = "asm", target_arch = "aarch64"))]
pub(crate) const BASELINE: Variant<Run> = aarch64::NEON;
#[cfg(not(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) const BASELINE: Variant<Run> = SCALAR;

/// From this length on, in bytes, a wider variant repays the look at [`dispatch`].
const LONG: usize = 128;

/// Index of the CR of the first CR LF in `hay`. A CR at the very end is no pair yet.
#[inline]
#[must_use]
pub fn find_crlf(hay: &[u8]) -> Option<usize> {
    if hay.len() < LONG { (dispatch::BASELINE.find_crlf)(hay) } else { (dispatch::picked().find_crlf)(hay) }
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
