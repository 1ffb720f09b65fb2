//! Which variant runs: the one place that picks.
//!
//! Each kernel lists what this CPU can run, slowest first; the last one is picked at the first call
//! and kept for the life of the process. Short input does not come here at all but goes straight to
//! `BASELINE`, a constant, because on a command line of ten bytes even a look at the choice is
//! felt.
//!
//! Not here: CPU detection. A function that needs an instruction can only be had from the `<arch>.rs`
//! that checked for it, so this file has no way to pick a wrong one.

use std::sync::LazyLock;

use crate::{adler32, crc32c, crlf_to_lf, find_byte, find_crlf, lf_to_crlf};

/// One implementation of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Variant<F> {
    /// The instruction set it needs, `scalar` for the oracle.
    pub name: &'static str,
    /// The implementation. Safe to call: it is only listed where the CPU can run it.
    pub run: F,
}

impl<F> Variant<F> {
    pub(crate) const fn new(name: &'static str, run: F) -> Self {
        Self { name, run }
    }
}

/// One implementation of every kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picked {
    pub(crate) find_byte: find_byte::Run,
    pub(crate) find_crlf: find_crlf::Run,
    pub(crate) crc32c: crc32c::Run,
    pub(crate) adler32: adler32::Run,
    pub(crate) lf_to_crlf: lf_to_crlf::Run,
    pub(crate) crlf_to_lf: crlf_to_lf::Run,
}

/// What every CPU of the architecture can run.
pub(crate) const BASELINE: Picked = Picked {
    find_byte: find_byte::BASELINE.run,
    find_crlf: find_crlf::BASELINE.run,
    crc32c: crc32c::SCALAR.run,
    adler32: adler32::SCALAR.run,
    lf_to_crlf: lf_to_crlf::BASELINE.run,
    crlf_to_lf: crlf_to_lf::BASELINE.run,
};

/// The fastest this CPU can run.
pub(crate) fn picked() -> &'static Picked {
    static PICKED: LazyLock<Picked> = LazyLock::new(|| Picked {
        find_byte: fastest(&find_byte::variants(), BASELINE.find_byte),
        find_crlf: fastest(&find_crlf::variants(), BASELINE.find_crlf),
        crc32c: fastest(&crc32c::variants(), BASELINE.crc32c),
        adler32: fastest(&adler32::variants(), BASELINE.adler32),
        lf_to_crlf: fastest(&lf_to_crlf::variants(), BASELINE.lf_to_crlf),
        crlf_to_lf: fastest(&crlf_to_lf::variants(), BASELINE.crlf_to_lf),
    });
    &PICKED
}

fn fastest<F: Copy>(slowest_first: &[Variant<F>], baseline: F) -> F {
    slowest_first.last().map_or(baseline, |variant| variant.run)
}
