//! The way into `asm/aarch64/lf_to_crlf.S`.

use std::arch::global_asm;

use super::{Run, State};
use crate::Converted;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/aarch64/lf_to_crlf.S"), options(raw));

/// What the assembly returns in x0 and x1.
#[repr(C)]
struct Done {
    read: usize,
    written: usize,
}

// SAFETY: the name and signature are those of the file assembled above, in the C convention of
// the platform, which returns a struct of two words in x0 and x1.
unsafe extern "C" {
    fn caisson_lf_to_crlf_neon(src: *const u8, left: usize, dst: *mut u8, room: usize) -> Done;
}

/// NEON is part of aarch64 as Rust and Linux define it.
pub(super) const NEON: Variant<Run> = Variant::new("neon", neon);

fn neon(src: &[u8], dst: &mut [u8], state: &mut State) -> Converted {
    super::around(src, dst, state, bulk)
}

/// Converts what follows the first byte of `src`, as far as whole steps go.
#[inline]
fn bulk(src: &[u8], dst: &mut [u8]) -> Converted {
    let Some((_, rest)) = src.split_first() else { return Converted::default() };
    // Begun at `src`, so that the byte before the first one to convert belongs to the pointer.
    let from = src.as_ptr().wrapping_add(1);
    // SAFETY: it reads `rest` and the one byte before it, all of them in `src`, and writes at most
    // `dst.len()` bytes at `dst`; both are ours for the call, and `&mut` keeps them apart.
    let done = unsafe { caisson_lf_to_crlf_neon(from, rest.len(), dst.as_mut_ptr(), dst.len()) };
    Converted { read: done.read, written: done.written }
}
