//! Gives back pages of the program itself that are not needed for now.
//!
//! The kernel maps sixteen pages of a program for each that is touched, and set-up touches most of them: measured, a fifth
//! of what a waiting broker weighs.

use std::ops::Range;

use rustix::mm::{Advice, madvise};

unsafe extern "C" {
    /// The first byte of the program as it is mapped (ld(1)).
    static __executable_start: u8;
    /// The first byte behind its machine code (end(3)).
    static etext: u8;
}

/// Unmaps the program's machine code and constants; a page comes back from the page cache when it is touched again.
pub fn give_back_pages() {
    let pages = unwritten();
    // SAFETY: from the ELF header to the last whole page of machine code lie only private mappings of the program's file
    // that are never written (what the loader relocates lies behind them, as the test below sees): the file holds the same
    // bytes. A failure leaves everything as it is.
    let _ = unsafe { madvise(std::ptr::without_provenance_mut(pages.start), pages.len(), Advice::LinuxDontNeed) };
}

/// The addresses of whole pages of machine code, and of what the linker has put in front of it.
fn unwritten() -> Range<usize> {
    // SAFETY: reads a number that the loader was told; it touches no memory of ours.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(usize::MAX);
    let whole = |address: usize| address / page * page;
    whole((&raw const __executable_start).addr())..whole((&raw const etext).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_the_programs_own_file_and_nobody_may_write_it() {
        let program = std::env::current_exe().unwrap().display().to_string();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let (pages, mut covered) = (unwritten(), 0);
        for line in maps.lines() {
            let (addresses, rest) = line.split_once(' ').unwrap();
            let (from, to) = addresses.split_once('-').unwrap();
            let [from, to] = [from, to].map(|address| usize::from_str_radix(address, 16).unwrap());
            let common = to.min(pages.end).saturating_sub(from.max(pages.start));
            if common > 0 {
                assert!(rest.starts_with("r--p") || rest.starts_with("r-xp"), "{line}");
                assert!(rest.ends_with(&program), "{line}");
                covered += common;
            }
        }
        assert!(covered > pages.len() / 2, "{covered} of {pages:x?}");
        give_back_pages();
    }
}
