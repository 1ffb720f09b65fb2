//! argon2id (RFC 9106) on memory that is allocated once and wiped after every use.
//!
//! An [`Arena`] belongs to one check thread (pool.rs). A fresh 64 MiB for each check would cost 16,384 page faults,
//! more than half of the computation itself. Freed when the thread has been idle, so an idle authd is small.
//! Not here: what an unknown user is checked against (users.rs).

use argon2::{Algorithm, Argon2, Block, Params, Version};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use stored_hash::{Cost, Stored};

/// Longest digest a stored hash has, in bytes.
const MAX_DIGEST: usize = 64;

/// Smallest reservation in blocks of 1 KiB. Above 32 MiB, the most that glibc ever serves from its heap, memory comes
/// by mmap and goes back by munmap; pages that no check touches cost nothing.
const LEAST: usize = 33 * 1024;

/// A check could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Memory the check needs, in KiB.
    pub wanted: u32,
}

/// Working memory of argon2id. All zero between checks.
#[derive(Default)]
pub struct Arena {
    blocks: Vec<Block>,
    /// How many blocks at the front may hold traces of a password.
    soiled: usize,
}

impl Arena {
    /// Whether there is no memory to free.
    pub fn is_empty(&self) -> bool {
        self.blocks.capacity() == 0
    }

    /// Whether `password` has this stored hash, compared in constant time. Leaves traces: call [`Arena::wipe`].
    pub fn matches(&mut self, stored: &Stored, password: &[u8]) -> Result<bool, OutOfMemory> {
        let mut space = Zeroizing::new([0; MAX_DIGEST]);
        let digest = space.get_mut(..stored.digest().len()).ok_or(OutOfMemory { wanted: 0 })?;
        self.compute(stored.cost(), password, stored.salt(), digest)?;
        Ok(bool::from(digest.ct_eq(stored.digest())))
    }

    /// Fills `digest` with the hash of `password`. Leaves traces: call [`Arena::wipe`].
    pub fn compute(&mut self, cost: Cost, password: &[u8], salt: &[u8], digest: &mut [u8]) -> Result<(), OutOfMemory> {
        // Costs, salts and digests come from `stored_hash`, whose ranges are narrower than the library's, and passwords are
        // short: what can still fail is memory.
        let failed = OutOfMemory { wanted: cost.memory };
        let params = Params::new(cost.memory, cost.passes, cost.lanes, Some(digest.len())).map_err(|_| failed)?;
        let count = params.block_count();
        self.grow(count).ok_or(failed)?;
        self.soiled = self.soiled.max(count);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(password, salt, digest, &mut self.blocks)
            .map_err(|_| failed)
    }

    fn grow(&mut self, count: usize) -> Option<()> {
        if self.blocks.capacity() < count {
            // Not in place: that would copy what is about to be overwritten.
            self.blocks = Vec::new();
            self.blocks.try_reserve_exact(count.max(LEAST)).ok()?;
        }
        if self.blocks.len() < count {
            self.blocks.resize(count, Block::new());
        }
        Some(())
    }

    /// Overwrites everything the last checks wrote.
    pub fn wipe(&mut self) {
        if let Some(soiled) = self.blocks.get_mut(..self.soiled) {
            soiled.iter_mut().zeroize();
        }
        self.soiled = 0;
    }

    /// Gives the memory back to the kernel.
    pub fn free(&mut self) {
        self.wipe();
        self.blocks = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(phc: &str, password: &[u8]) -> bool {
        let mut arena = Arena::default();
        arena.matches(&Stored::parse(phc.as_bytes()).unwrap(), password).unwrap()
    }

    /// phc-winner-argon2 src/test.c, argon2id section; the one of four lanes was made with its argon2(1).
    #[test]
    fn vectors_of_the_reference_library_hold() {
        for (password, phc) in [
            ("password", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"),
            ("password", "$argon2id$v=19$m=262144,t=2,p=1$c29tZXNhbHQ$eP4eyR+zqlZX1y5xCFTkw9m5GYx0L5YWwvCFvtlbLow"),
            ("password", "$argon2id$v=19$m=65536,t=4,p=1$c29tZXNhbHQ$kCXUjmjvc5XMqQedpMTsOv+zyJEf5PhtGiUghW9jFyw"),
            ("password", "$argon2id$v=19$m=65536,t=2,p=4$c29tZXNhbHQ$GpZ3sK/oH9p7VIiV56G/64Zo/8GaUw434IimaPqxwCo"),
            (
                "differentpassword",
                "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$C4TWUs9rDEvq7w3+J4umqA32aWKB1+DSiRuBfYxFj94",
            ),
            ("password", "$argon2id$v=19$m=65536,t=2,p=1$ZGlmZnNhbHQ$vfMrBczELrFdWP0ZsfhWsRPaHppYdP3MVEMIVlqoFBw"),
        ] {
            assert!(check(phc, password.as_bytes()), "{phc}");
        }
    }

    #[test]
    fn an_arena_is_all_zero_after_a_wipe_and_good_for_the_next_check() {
        let phc = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let stored = Stored::parse(phc.as_bytes()).unwrap();
        let mut arena = Arena::default();
        for _ in 0..2 {
            assert_eq!(arena.matches(&stored, b"password"), Ok(true));
            assert!(arena.blocks.iter().any(|block| block.as_ref() != [0; 128]));
            arena.wipe();
            assert!(arena.blocks.iter().all(|block| block.as_ref() == [0; 128]));
        }
        arena.free();
        assert!(arena.is_empty());
    }

    #[test]
    fn lanes_and_odd_lengths_work() {
        let cost = Cost { memory: 19_459, passes: 2, lanes: 4 };
        let (mut arena, mut digest) = (Arena::default(), [0; 17]);
        arena.compute(cost, b"", b"12345678", &mut digest).unwrap();
        let stored = Stored::new(cost, b"12345678", &digest).unwrap();
        assert_eq!(arena.matches(&stored, b""), Ok(true));
        assert_eq!(arena.matches(&stored, b"x"), Ok(false));
    }
}
