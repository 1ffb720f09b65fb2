//! Memory with nothing before it and nothing behind it: a read or write outside is a SIGSEGV.

use std::ptr;
use std::slice;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// A multiple of every page size Linux has on the architectures tested.
const ROOM: usize = 64 << 10;

/// `ROOM` bytes that can be used, between `ROOM` bytes on each side that cannot.
pub struct Guarded {
    map: *mut u8,
}

impl Guarded {
    pub fn new() -> Self {
        // SAFETY: a new anonymous mapping, placed by the kernel: it takes the place of nothing.
        let map = unsafe { mmap_anonymous(ptr::null_mut(), 3 * ROOM, ProtFlags::empty(), MapFlags::PRIVATE) };
        let map = map.expect("mmap").cast::<u8>();
        // SAFETY: the middle third of the mapping just made, to which no reference exists yet.
        unsafe { mprotect(map.add(ROOM).cast(), ROOM, MprotectFlags::READ | MprotectFlags::WRITE) }.expect("mprotect");
        Self { map }
    }

    /// The last `len` bytes: the next one is unmapped.
    pub fn end(&mut self, len: usize) -> &mut [u8] {
        self.part(ROOM - len, len)
    }

    /// The first `len` bytes: the one before is unmapped.
    pub fn start(&mut self, len: usize) -> &mut [u8] {
        self.part(0, len)
    }

    fn part(&mut self, from: usize, len: usize) -> &mut [u8] {
        assert!(from <= ROOM && len <= ROOM - from);
        // SAFETY: inside the usable third (asserted), zeroed by the kernel at first, and borrowed
        // from `self` alone.
        unsafe { slice::from_raw_parts_mut(self.map.add(ROOM + from), len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the whole mapping made by `new`; no slice of it outlives `self`.
        unsafe { munmap(self.map.cast(), 3 * ROOM) }.expect("munmap");
    }
}
