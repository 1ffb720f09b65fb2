//! The way into `asm/aarch64/crc32c.S`.

use std::arch::{global_asm, is_aarch64_feature_detected};

use super::Run;
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/aarch64/crc32c.S"), options(raw));

// SAFETY: the name and signature are those of the file assembled above, in the C convention of
// the platform.
unsafe extern "C" {
    fn caisson_crc32c_crc(crc: u32, data: *const u8, len: usize) -> u32;
}

/// CRC with PMULL, where the CPU offers both. The only way to it.
pub(super) fn crc() -> Option<Variant<Run>> {
    let found = is_aarch64_feature_detected!("crc") && is_aarch64_feature_detected!("pmull");
    found.then_some(Variant::new("crc", crc_found))
}

fn crc_found(seed: u32, data: &[u8]) -> u32 {
    // SAFETY: both extensions were found by `crc`, the only giver of this function. It reads `len`
    // bytes from `data`, which the slice guarantees, and writes nothing.
    unsafe { caisson_crc32c_crc(seed, data.as_ptr(), data.len()) }
}
