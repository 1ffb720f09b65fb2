//! What an account may do, as a set. Not here: which operations there are (permission.rs).

use super::Permission;

/// A set of permissions; nothing by default. Root hands it on as a number and looks into none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Permissions(pub(super) u16);

impl Permissions {
    const MASK: u16 = (1 << Permission::ALL.len()) - 1;
    /// Nothing.
    pub const NONE: Permissions = Permissions(0);
    /// Everything.
    pub const ALL: Permissions = Permissions(Self::MASK);

    /// Back from [`Permissions::bits`]; `None` when a bit stands for no permission.
    pub fn from_bits(bits: u16) -> Option<Self> {
        Some(Permissions(bits)).filter(|_| bits & !Self::MASK == 0)
    }

    /// The number by which it crosses links.
    pub fn bits(self) -> u16 {
        self.0
    }
}
