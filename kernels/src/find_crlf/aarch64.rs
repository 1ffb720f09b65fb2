//! The way into `asm/aarch64/find_crlf.S`.

use std::arch::global_asm;

use super::Run;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/aarch64/find_crlf.S"), options(raw));

// SAFETY: the name and signature are those of the file assembled above, in the C convention of
// the platform.
unsafe extern "C" {
    fn caisson_find_crlf_neon(hay: *const u8, places: usize) -> usize;
}

/// NEON is part of aarch64 as Rust and Linux define it.
pub(super) const NEON: Variant<Run> = Variant::new("neon", neon);

#[inline]
fn neon(hay: &[u8]) -> Option<usize> {
    let places = hay.len().checked_sub(1)?;
    // SAFETY: it reads `places` + 1 bytes from `hay`: the slice's length. It writes nothing.
    let at = unsafe { caisson_find_crlf_neon(hay.as_ptr(), places) };
    (at < places).then_some(at)
}
