//! The way into `asm/aarch64/find_byte.S`.

use std::arch::global_asm;

use super::Run;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/aarch64/find_byte.S"), options(raw));

// SAFETY: the name and signature are those of the file assembled above, in the C convention of
// the platform.
unsafe extern "C" {
    fn caisson_find_byte_neon(hay: *const u8, len: usize, needle: u32) -> usize;
}

/// NEON is part of aarch64 as Rust and Linux define it.
pub(super) const NEON: Variant<Run> = Variant::new("neon", neon);

#[inline]
fn neon(hay: &[u8], needle: u8) -> Option<usize> {
    // SAFETY: it reads `len` bytes from `hay`, which the slice guarantees, and writes nothing.
    let at = unsafe { caisson_find_byte_neon(hay.as_ptr(), hay.len(), u32::from(needle)) };
    (at < hay.len()).then_some(at)
}
