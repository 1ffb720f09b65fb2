//! The way into `asm/aarch64/ct_eq.S`.

use std::arch::global_asm;

use super::Run;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/aarch64/ct_eq.S"), options(raw));

// SAFETY: the name and signature are those of the file assembled above, in the C convention of
// the platform.
unsafe extern "C" {
    fn caisson_ct_eq_neon(a: *const u8, b: *const u8, len: usize) -> u32;
}

/// NEON is part of aarch64 as Rust and Linux define it.
pub(super) const NEON: Variant<Run> = Variant::new("neon", neon);

#[inline]
fn neon(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // SAFETY: it reads `len` bytes from each, which both slices guarantee, and writes nothing.
    unsafe { caisson_ct_eq_neon(a.as_ptr(), b.as_ptr(), a.len()) != 0 }
}
