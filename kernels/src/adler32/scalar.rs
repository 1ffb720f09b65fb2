//! The oracle.

use super::MODULUS;

/// The most bytes after which neither sum, begun below the modulus, has passed 2^32 (zlib's NMAX).
const RUN: usize = 5552;

/// The Adler-32 of `data`, going on from `seed`.
pub(crate) fn adler32(seed: u32, data: &[u8]) -> u32 {
    let mut a = (seed & 0xffff) % MODULUS;
    let mut b = (seed >> 16) % MODULUS;
    for run in data.chunks(RUN) {
        for &byte in run {
            a += u32::from(byte);
            b += a;
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}
