//! What makes a type a record: how long it may be, and how many descriptors come with it.

use std::ops::RangeInclusive;

use serde::{Serialize, de::DeserializeOwned};

/// A record of one direction of one link.
///
/// Variants of the implementing enums are appended, never reordered.
pub trait Record: Serialize + DeserializeOwned {
    /// Longest encoding in bytes; a longer record is refused by sender and receiver alike.
    const CAP: usize = 4096;
    /// Whether buffers that held a record are wiped after use, because records carry passwords.
    const WIPE: bool = false;
    /// How many descriptors must come with this very record; any other count is a breach. None, unless it says so.
    fn descriptors(&self) -> RangeInclusive<usize> {
        NONE
    }
}

/// No descriptor.
pub const NONE: RangeInclusive<usize> = 0..=0;
/// Exactly one descriptor.
pub const ONE: RangeInclusive<usize> = 1..=1;
/// Exactly two descriptors.
pub const TWO: RangeInclusive<usize> = 2..=2;
/// One descriptor or none.
pub const UP_TO_ONE: RangeInclusive<usize> = 0..=1;

/// A question and the reply that belongs to it, declared together.
///
/// `ask_x` in the asking process and `answer_x` in the answering one are named after the implementing type.
pub trait Call {
    /// What comes back.
    type Reply;
    /// Descriptors that come with the question.
    const SENT: RangeInclusive<usize>;
    /// Descriptors that come with the reply.
    const RETURNED: RangeInclusive<usize>;
}
