//! The way into `asm/x86_64/crlf_to_lf.S`.

use std::arch::{global_asm, is_x86_feature_detected};

use super::{Run, State};
use crate::Converted;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/x86_64/crlf_to_lf.S"), options(raw));

/// What the assembly returns in rax and rdx.
#[repr(C)]
struct Done {
    read: usize,
    written: usize,
}

type Bulk = unsafe extern "sysv64" fn(*const u8, usize, *mut u8, usize) -> Done;

// SAFETY: the names and signatures are those of the file assembled above, both sysv64, which returns
// a struct of two words in rax and rdx.
unsafe extern "sysv64" {
    fn caisson_crlf_to_lf_sse2(src: *const u8, left: usize, dst: *mut u8, room: usize) -> Done;
    fn caisson_crlf_to_lf_avx2(src: *const u8, left: usize, dst: *mut u8, room: usize) -> Done;
}

/// SSE2 is part of x86_64 itself.
pub(super) const SSE2: Variant<Run> = Variant::new("sse2", sse2);

/// AVX2, where the CPU and the kernel offer it. The only way to it.
pub(super) fn avx2() -> Option<Variant<Run>> {
    is_x86_feature_detected!("avx2").then_some(Variant::new("avx2", avx2_found))
}

fn sse2(src: &[u8], dst: &mut [u8], state: &mut State) -> Converted {
    super::around(src, dst, state, sse2_bulk)
}

fn avx2_found(src: &[u8], dst: &mut [u8], state: &mut State) -> Converted {
    // SAFETY: AVX2 was found by `avx2`, the only giver of this function.
    let wide = |src: &[u8], dst: &mut [u8]| unsafe { bulk(caisson_crlf_to_lf_avx2, src, dst) };
    super::around(src, dst, state, |src, dst| wide(src, dst).and(src, dst, sse2_bulk))
}

#[inline]
fn sse2_bulk(src: &[u8], dst: &mut [u8]) -> Converted {
    // SAFETY: SSE2 is part of x86_64 itself.
    unsafe { bulk(caisson_crlf_to_lf_sse2, src, dst) }
}

/// Converts the first bytes of `src`, as far as whole steps go.
///
/// # Safety
/// `run` is one of the two functions above, and the CPU has what it needs.
#[inline]
unsafe fn bulk(run: Bulk, src: &[u8], dst: &mut [u8]) -> Converted {
    // SAFETY: it reads at most `src.len()` bytes at `src` and writes at most `dst.len()` bytes at
    // `dst`; both are ours for the call, and `&mut` keeps them apart.
    let done = unsafe { run(src.as_ptr(), src.len(), dst.as_mut_ptr(), dst.len()) };
    Converted { read: done.read, written: done.written }
}
