//! The way into `asm/x86_64/find_byte.S`.

use std::arch::{global_asm, is_x86_feature_detected};

use super::Run;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/x86_64/find_byte.S"), options(raw));

// SAFETY: the names and signatures are those of the file assembled above, both sysv64.
unsafe extern "sysv64" {
    fn caisson_find_byte_sse2(hay: *const u8, len: usize, needle: u32) -> usize;
    fn caisson_find_byte_avx2(hay: *const u8, len: usize, needle: u32) -> usize;
}

/// SSE2 is part of x86_64 itself.
pub(super) const SSE2: Variant<Run> = Variant::new("sse2", sse2);

/// AVX2, where the CPU and the kernel offer it. The only way to it.
pub(super) fn avx2() -> Option<Variant<Run>> {
    is_x86_feature_detected!("avx2").then_some(Variant::new("avx2", avx2_found))
}

#[inline]
fn sse2(hay: &[u8], needle: u8) -> Option<usize> {
    // SAFETY: it reads `len` bytes from `hay`, which the slice guarantees, and writes nothing.
    let at = unsafe { caisson_find_byte_sse2(hay.as_ptr(), hay.len(), u32::from(needle)) };
    (at < hay.len()).then_some(at)
}

fn avx2_found(hay: &[u8], needle: u8) -> Option<usize> {
    if hay.len() < 32 {
        return sse2(hay, needle);
    }
    // SAFETY: AVX2 was found by `avx2`, the only giver of this function. It reads `len` bytes from
    // `hay`, which the slice guarantees and of which there are at least the 32 it asks for.
    let at = unsafe { caisson_find_byte_avx2(hay.as_ptr(), hay.len(), u32::from(needle)) };
    (at < hay.len()).then_some(at)
}
