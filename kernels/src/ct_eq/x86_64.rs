//! The way into `asm/x86_64/ct_eq.S`.

use std::arch::global_asm;

use super::Run;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/x86_64/ct_eq.S"), options(raw));

// SAFETY: the name and signature are those of the file assembled above, sysv64.
unsafe extern "sysv64" {
    fn caisson_ct_eq_sse2(a: *const u8, b: *const u8, len: usize) -> u32;
}

/// SSE2 is part of x86_64 itself.
pub(super) const SSE2: Variant<Run> = Variant::new("sse2", sse2);

#[inline]
fn sse2(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // SAFETY: it reads `len` bytes from each, which both slices guarantee, and writes nothing.
    unsafe { caisson_ct_eq_sse2(a.as_ptr(), b.as_ptr(), a.len()) != 0 }
}
