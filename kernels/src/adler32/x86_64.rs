//! The way into `asm/x86_64/adler32.S`.

use std::arch::{global_asm, is_x86_feature_detected};

use super::{Run, Sums};
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/x86_64/adler32.S"), options(raw));

// SAFETY: the name and signature are those of the file assembled above, sysv64.
unsafe extern "sysv64" {
    fn caisson_adler32_avx2(block: *const u8, len: usize) -> u64;
}

/// AVX2, where the CPU and the kernel offer it. The only way to it.
pub(super) fn avx2() -> Option<Variant<Run>> {
    is_x86_feature_detected!("avx2").then_some(Variant::new("avx2", avx2_found))
}

fn avx2_found(seed: u32, data: &[u8]) -> u32 {
    super::by_blocks(seed, data, |block| {
        // SAFETY: AVX2 was found by `avx2`, the only giver of this function. `by_blocks` gives 1 to
        // 90 whole steps of 64 bytes, as the assembly asks. It reads them and writes nothing.
        Sums::unpack(unsafe { caisson_adler32_avx2(block.as_ptr(), block.len()) })
    })
}
