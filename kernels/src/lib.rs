//! Byte kernels: the few loops over bytes that are worth writing by hand.
//!
//! | kernel | used for | x86_64 | aarch64 |
//! |---|---|---|---|
//! | [`find_byte()`], [`find_newline`], [`find_crlf()`] | framing of FTP commands | SSE2, AVX2 | NEON |
//! | [`lf_to_crlf()`], [`crlf_to_lf()`] | FTP TYPE A, both ways | SSE2, AVX2 | NEON |
//! | [`crc32c()`] | checksums | SSE4.2 + PCLMULQDQ | CRC + PMULL |
//! | [`adler32()`] | weak checksums | AVX2 | NEON |
//!
//! Each kernel is a folder. `scalar.rs` is plain Rust, always built, and defines the result; the
//! assembly in `asm/<arch>/<kernel>.S` must agree with it for every input (`tests/agree.rs`), and
//! `<arch>.rs` is the only file that may call it. [`dispatch`] alone picks, once, by what the CPU
//! reports. The feature `asm` (on by default) decides whether assembly is built at all; without it
//! the results are the same.
//!
//! Pure computation: no I/O, no allocation after the first call, no state that outlives a call but
//! the choice made by [`dispatch`]. Input is whatever a client sent: every function is total, none
//! panics, and no byte outside the given slices is read or written.
//!
//! What each version is worth is measured by `cargo bench -p kernels`; a variant that does not beat
//! the compiler's own work on the scalar version is not kept. What was run where is said in
//! `kernels/README.md`.
#![deny(unsafe_code)]

#[cfg(all(
    feature = "asm",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))
))]
compile_error!("the assembly is for 64-bit little-endian Linux: build kernels without `asm`");

pub mod adler32;
pub mod crc32c;
pub mod crlf_to_lf;
pub mod dispatch;
pub mod find_byte;
pub mod find_crlf;
pub mod lf_to_crlf;

pub use adler32::adler32;
pub use crc32c::crc32c;
pub use crlf_to_lf::crlf_to_lf;
pub use find_byte::{find_byte, find_newline};
pub use find_crlf::find_crlf;
pub use lf_to_crlf::lf_to_crlf;

/// How far a conversion came; what was not read is to be given again, with more room.
#[must_use = "bytes beyond `read` were not converted"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Bytes consumed from the source.
    pub read: usize,
    /// Bytes produced in the destination. Those behind them may have been overwritten.
    pub written: usize,
}

#[cfg(all(feature = "asm", any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Converted {
    /// This far, and then as much as `more` does with what is left of both.
    #[inline]
    fn and(self, src: &[u8], dst: &mut [u8], more: impl FnOnce(&[u8], &mut [u8]) -> Self) -> Self {
        let more = more(&src[self.read..], &mut dst[self.written..]);
        Self { read: self.read + more.read, written: self.written + more.written }
    }
}
