//! Gives back pages of the program itself that are not needed for now.
//!
//! The kernel maps sixteen pages of a program for each that is touched, and set-up touches most of them: measured, a fifth
//! of what a waiting broker weighs.

use rustix::mm::{Advice, madvise};

unsafe extern "C" {
    /// The first byte of the program as it is mapped (ld(1)).
    static __executable_start: u8;
    /// The first byte behind its machine code (end(3)).
    static etext: u8;
}

/// Unmaps the program's machine code and constants; a page comes back from the page cache when it is touched again.
pub fn give_back_pages() {
    // SAFETY: reads a number that the loader was told; it touches no memory of ours.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(usize::MAX);
    let start = (&raw const __executable_start).addr() / page * page;
    let end = (&raw const etext).addr() / page * page;
    // SAFETY: from the ELF header to the last whole page of machine code lie only private mappings of the program's file
    // that are never written (what the loader relocates lies behind them): the file holds the same bytes. A failure
    // leaves everything as it is.
    let _ = unsafe { madvise(std::ptr::without_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
}
