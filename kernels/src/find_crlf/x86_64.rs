//! The way into `asm/x86_64/find_crlf.S`.

use std::arch::{global_asm, is_x86_feature_detected};

use super::Run;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/x86_64/find_crlf.S"), options(raw));

// SAFETY: the names and signatures are those of the file assembled above, both sysv64.
unsafe extern "sysv64" {
    fn caisson_find_crlf_sse2(hay: *const u8, places: usize) -> usize;
    fn caisson_find_crlf_avx2(hay: *const u8, places: usize) -> usize;
}

/// SSE2 is part of x86_64 itself.
pub(super) const SSE2: Variant<Run> = Variant::new("sse2", sse2);

/// AVX2, where the CPU and the kernel offer it. The only way to it.
pub(super) fn avx2() -> Option<Variant<Run>> {
    is_x86_feature_detected!("avx2").then_some(Variant::new("avx2", avx2_found))
}

#[inline]
fn sse2(hay: &[u8]) -> Option<usize> {
    let places = hay.len().checked_sub(1)?;
    // SAFETY: it reads `places` + 1 bytes from `hay`: the slice's length. It writes nothing.
    let at = unsafe { caisson_find_crlf_sse2(hay.as_ptr(), places) };
    (at < places).then_some(at)
}

fn avx2_found(hay: &[u8]) -> Option<usize> {
    let places = hay.len().checked_sub(1)?;
    if places < 32 {
        return sse2(hay);
    }
    // SAFETY: AVX2 was found by `avx2`, the only giver of this function. It reads `places` + 1 bytes
    // from `hay`, the slice's length, and there are at least the 32 places it asks for.
    let at = unsafe { caisson_find_crlf_avx2(hay.as_ptr(), places) };
    (at < places).then_some(at)
}
