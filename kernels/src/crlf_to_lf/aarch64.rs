//! The way into `asm/aarch64/crlf_to_lf.S`.

use std::arch::global_asm;

use super::{Run, State};
use crate::Converted;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/aarch64/crlf_to_lf.S"), options(raw));

/// What the assembly returns in x0 and x1.
#[repr(C)]
struct Done {
    read: usize,
    written: usize,
}

// SAFETY: the name and signature are those of the file assembled above, in the C convention of
// the platform, which returns a struct of two words in x0 and x1.
unsafe extern "C" {
    fn caisson_crlf_to_lf_neon(src: *const u8, left: usize, dst: *mut u8, room: usize) -> Done;
}

/// NEON is part of aarch64 as Rust and Linux define it.
pub(super) const NEON: Variant<Run> = Variant::new("neon", neon);

fn neon(src: &[u8], dst: &mut [u8], state: &mut State) -> Converted {
    super::around(src, dst, state, bulk)
}

/// Converts the first bytes of `src`, as far as whole steps go.
#[inline]
fn bulk(src: &[u8], dst: &mut [u8]) -> Converted {
    // SAFETY: it reads at most `src.len()` bytes at `src` and writes at most `dst.len()` bytes at
    // `dst`; both are ours for the call, and `&mut` keeps them apart.
    let done = unsafe { caisson_crlf_to_lf_neon(src.as_ptr(), src.len(), dst.as_mut_ptr(), dst.len()) };
    Converted { read: done.read, written: done.written }
}
