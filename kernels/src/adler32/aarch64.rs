//! The way into `asm/aarch64/adler32.S`.

use std::arch::global_asm;

use super::{Run, Sums};
use crate::dispatch::Variant;

global_asm!(include_str!("../../asm/aarch64/adler32.S"), options(raw));

// SAFETY: the name and signature are those of the file assembled above, in the C convention of
// the platform.
unsafe extern "C" {
    fn caisson_adler32_neon(block: *const u8, len: usize) -> u64;
}

/// NEON is part of aarch64 as Rust and Linux define it.
pub(super) const NEON: Variant<Run> = Variant::new("neon", neon);

fn neon(seed: u32, data: &[u8]) -> u32 {
    super::by_blocks(seed, data, |block| {
        // SAFETY: `by_blocks` gives 1 to 90 whole steps of 64 bytes, as the assembly asks. It reads
        // them and writes nothing.
        Sums::unpack(unsafe { caisson_adler32_neon(block.as_ptr(), block.len()) })
    })
}
