//! A port a client can be reached at. On the monitor's link it is a bare number, which root judges itself.

use std::num::NonZeroU16;

/// A TCP port, 1 to 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port(pub NonZeroU16);

impl Port {
    /// `None` for port 0.
    pub fn new(number: u16) -> Option<Self> {
        NonZeroU16::new(number).map(Port)
    }

    /// The number.
    pub fn get(self) -> u16 {
        self.0.get()
    }
}
