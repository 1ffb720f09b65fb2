//! CRC-32C: the checksum of iSCSI (RFC 3720 §12.1), polynomial 0x1EDC6F41, bits reversed.

#[cfg(all(feature = "asm", target_arch = "aarch64"))]
#[allow(unsafe_code, reason = "calls assembly")]
mod aarch64;
mod scalar;
#[cfg(all(feature = "asm", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "calls assembly")]
mod x86_64;

use crate::dispatch::{self, Variant};

/// Signature of every variant.
pub type Run = fn(u32, &[u8]) -> u32;

pub(crate) const SCALAR: Variant<Run> = Variant::new("scalar", scalar::crc32c);

/// The CRC-32C of `data`, going on from `seed`: 0 at the start, then what the last call returned.
///
/// `crc32c(crc32c(0, a), b)` is the checksum of `a` followed by `b`.
#[inline]
#[must_use]
pub fn crc32c(seed: u32, data: &[u8]) -> u32 {
    (dispatch::picked().crc32c)(seed, data)
}

/// Every variant this CPU can run, slowest first, for tests and the bench.
#[must_use]
pub fn variants() -> Vec<Variant<Run>> {
    let scalar = std::iter::once(SCALAR);
    #[cfg(all(feature = "asm", target_arch = "x86_64"))]
    let all = scalar.chain(x86_64::sse42());
    #[cfg(all(feature = "asm", target_arch = "aarch64"))]
    let all = scalar.chain(aarch64::crc());
    #[cfg(not(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let all = scalar;
    all.collect()
}
