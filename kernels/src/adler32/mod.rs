//! Adler-32: the checksum of zlib (RFC 1950 §2.2). Weak and quick; not against an adversary.

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

pub(crate) const SCALAR: Variant<Run> = Variant::new("scalar", scalar::adler32);

/// The largest prime below 2^16.
const MODULUS: u32 = 65_521;

/// The Adler-32 of `data`, going on from `seed`: 1 at the start, then what the last call returned.
///
/// Any `seed` is taken: its halves are reduced modulo 65521 first.
#[inline]
#[must_use]
pub fn adler32(seed: u32, data: &[u8]) -> u32 {
    (dispatch::picked().adler32)(seed, data)
}

/// Every variant this CPU can run, slowest first, for tests and the bench.
#[must_use]
pub fn variants() -> Vec<Variant<Run>> {
    let scalar = std::iter::once(SCALAR);
    #[cfg(all(feature = "asm", target_arch = "x86_64"))]
    let all = scalar.chain(x86_64::avx2());
    #[cfg(all(feature = "asm", target_arch = "aarch64"))]
    let all = scalar.chain([aarch64::NEON]);
    #[cfg(not(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let all = scalar;
    all.collect()
}

/// Adler-32 on top of a kernel that sums one block of at most [`BLOCK`] bytes.
#[cfg(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn by_blocks(seed: u32, data: &[u8], sums: impl Fn(&[u8]) -> Sums) -> u32 {
    const M: u64 = MODULUS as u64;
    let (steps, rest) = data.as_chunks::<STEP>();
    let mut a = u64::from(seed & 0xffff);
    let mut b = u64::from(seed >> 16);
    for block in steps.chunks(BLOCK / STEP) {
        let block = block.as_flattened();
        let Sums { plain, weighted } = sums(block);
        // Below 2^16 * 5760 + 2^32 + 2^16: far from 2^64. `a` as it was counts once a byte.
        b = (b + a * block.len() as u64 + u64::from(weighted)) % M;
        a = (a + u64::from(plain)) % M;
    }
    scalar::adler32((b << 16 | a) as u32, rest)
}

/// Bytes an assembly step takes.
#[cfg(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64")))]
const STEP: usize = 64;

/// The most bytes, in whole steps, whose weighted sum fits 32 bits.
#[cfg(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64")))]
const BLOCK: usize = 5760;

/// The sums of one block of n bytes, begun at zero and not reduced.
#[cfg(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64")))]
struct Sums {
    /// Sum of byte\[i].
    plain: u32,
    /// Sum of (n - i) * byte\[i].
    weighted: u32,
}

#[cfg(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Sums {
    /// From the two halves of what the assembly returns.
    const fn unpack(packed: u64) -> Self {
        Self { plain: packed as u32, weighted: (packed >> 32) as u32 }
    }
}
