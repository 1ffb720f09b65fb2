//! postcard with a length cap: left-over bytes are an error, and what is wrong is named.

use std::{fmt, ops::RangeInclusive};

use crate::call::Record;

/// How a record from the other end broke the contract. The link is not usable afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Breach {
    /// The record was longer than the cap of its link, in bytes.
    TooLong(usize),
    /// More descriptors came than any record may carry; the kernel cut the list.
    DescriptorsCut,
    /// The number of descriptors does not fit the record.
    Descriptors {
        /// What the record declares.
        expected: RangeInclusive<usize>,
        /// What came.
        got: usize,
    },
    /// The bytes are not a record of this link, or hold a value out of range.
    Malformed,
    /// The record is followed by this many more bytes.
    LeftOver(usize),
    /// A well-formed record that is not allowed now; names the rule.
    OutOfPhase(&'static str),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::TooLong(cap) => write!(f, "record longer than {cap} bytes"),
            Breach::DescriptorsCut => write!(f, "too many descriptors in one record"),
            Breach::Descriptors { expected, got } => {
                write!(f, "{got} descriptors where {} to {} belong", expected.start(), expected.end())
            }
            Breach::Malformed => write!(f, "malformed record"),
            Breach::LeftOver(n) => write!(f, "{n} bytes left over behind the record"),
            Breach::OutOfPhase(rule) => write!(f, "not allowed now: {rule}"),
        }
    }
}

impl std::error::Error for Breach {}

/// Decodes one record; every byte must belong to it.
pub fn decode<R: Record>(bytes: &[u8]) -> Result<R, Breach> {
    if bytes.len() > R::CAP {
        return Err(Breach::TooLong(R::CAP));
    }
    match postcard::take_from_bytes::<R>(bytes) {
        Ok((record, [])) => Ok(record),
        Ok((_, rest)) => Err(Breach::LeftOver(rest.len())),
        Err(_) => Err(Breach::Malformed),
    }
}

/// Encodes `record` into the front of `buffer`; `None` when it does not fit, which is a fault of the caller.
pub fn encode<'b, R: Record>(record: &R, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    postcard::to_slice(record, buffer).ok().map(|used| &*used)
}

/// Checks a descriptor count against what the record declares.
pub fn check_descriptors<R: Record>(record: &R, got: usize) -> Result<(), Breach> {
    let expected = record.descriptors();
    if expected.contains(&got) { Ok(()) } else { Err(Breach::Descriptors { expected, got }) }
}
