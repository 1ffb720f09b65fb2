//! What an account may do, as a set: all that root knows of it. Not here: which operations there are (permission.rs).

use serde::{Deserialize, Deserializer, Serialize, de};

use super::Permission;

/// A set of permissions; nothing by default.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Permissions(pub(super) u16);

impl Permissions {
    const MASK: u16 = (1 << Permission::ALL.len()) - 1;
    /// Nothing.
    pub const NONE: Permissions = Permissions(0);
    /// Everything.
    pub const ALL: Permissions = Permissions(Self::MASK);
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bits = u16::deserialize(from)?;
        if bits & !Self::MASK == 0 { Ok(Permissions(bits)) } else { Err(de::Error::custom("unknown permission")) }
    }
}
