//! The way into `asm/x86_64/crc32c.S`.

use std::arch::{global_asm, is_x86_feature_detected};

use super::Run;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/x86_64/crc32c.S"), options(raw));

// SAFETY: the name and signature are those of the file assembled above, sysv64.
unsafe extern "sysv64" {
    fn caisson_crc32c_sse42(crc: u32, data: *const u8, len: usize) -> u32;
}

/// SSE4.2 with PCLMULQDQ, where the CPU offers both. The only way to it.
pub(super) fn sse42() -> Option<Variant<Run>> {
    let found = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq");
    found.then_some(Variant::new("sse4.2", sse42_found))
}

fn sse42_found(seed: u32, data: &[u8]) -> u32 {
    // SAFETY: both instruction sets were found by `sse42`, the only giver of this function. It reads
    // `len` bytes from `data`, which the slice guarantees, and writes nothing.
    unsafe { caisson_crc32c_sse42(seed, data.as_ptr(), data.len()) }
}
