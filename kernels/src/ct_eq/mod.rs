//! Are two secrets equal? In a time that does not tell where they differ.
//!
//! The assembly branches on the length alone, and no compiler sees it, so none can turn it back into
//! a comparison that stops early. The scalar version asks the compiler not to (`black_box`), which is
//! the most that plain Rust can do.
//!
//! Not hidden: the length, and that two lengths differ. Compare digests, which have one length.

#[cfg(all(feature = "asm", target_arch = "aarch64"))]
#[allow(unsafe_code, reason = "calls assembly")]
mod aarch64;
mod scalar;
#[cfg(all(feature = "asm", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "calls assembly")]
mod x86_64;

use crate::dispatch::{self, Variant};

/// Signature of every variant.
pub type Run = fn(&[u8], &[u8]) -> bool;

const SCALAR: Variant<Run> = Variant::new("scalar", scalar::ct_eq);

#[cfg(all(feature = "asm", target_arch = "x86_64"))]
pub(crate) const BASELINE: Variant<Run> = x86_64::SSE2;
#[cfg(all(feature = "asm", target_arch = "aarch64"))]
pub(crate) const BASELINE: Variant<Run> = aarch64::NEON;
#[cfg(not(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) const BASELINE: Variant<Run> = SCALAR;

/// Whether `a` and `b` hold the same bytes.
#[inline]
#[must_use]
pub fn ct_eq(a: &[u8], b: &[u8]) -> bool {
    (dispatch::BASELINE.ct_eq)(a, b)
}

/// Every variant this CPU can run, slowest first, for tests and the bench.
#[must_use]
pub fn variants() -> Vec<Variant<Run>> {
    let scalar = std::iter::once(SCALAR);
    #[cfg(all(feature = "asm", target_arch = "x86_64"))]
    let all = scalar.chain([x86_64::SSE2]);
    #[cfg(all(feature = "asm", target_arch = "aarch64"))]
    let all = scalar.chain([aarch64::NEON]);
    #[cfg(not(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let all = scalar;
    all.collect()
}
