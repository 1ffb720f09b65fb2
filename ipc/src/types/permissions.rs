//! What an account may do: operations, never names of commands, so that every protocol obeys the same row.

use serde::{Deserialize, Deserializer, Serialize, de};

/// One operation that users.toml can grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Permission {
    /// Read file contents.
    Read = 1 << 0,
    /// Create files and write to them.
    Write = 1 << 1,
    /// Replace or change files that exist (without it, `write` only makes new ones).
    Overwrite = 1 << 2,
    /// List directories and read attributes.
    List = 1 << 3,
    /// Remove files.
    Delete = 1 << 4,
    /// Rename files and directories.
    Rename = 1 << 5,
    /// Make directories.
    Mkdir = 1 << 6,
    /// Remove directories.
    Rmdir = 1 << 7,
    /// Change permission bits.
    Chmod = 1 << 8,
    /// Change time stamps.
    Times = 1 << 9,
}

impl Permission {
    /// Every permission with its name in users.toml, in the order of caisson-users(5).
    pub const ALL: [(&'static str, Permission); 10] = [
        ("read", Permission::Read),
        ("write", Permission::Write),
        ("overwrite", Permission::Overwrite),
        ("list", Permission::List),
        ("delete", Permission::Delete),
        ("rename", Permission::Rename),
        ("mkdir", Permission::Mkdir),
        ("rmdir", Permission::Rmdir),
        ("chmod", Permission::Chmod),
        ("times", Permission::Times),
    ];
}

/// A set of permissions; nothing by default.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Permissions(u16);

impl Permissions {
    const MASK: u16 = (1 << Permission::ALL.len()) - 1;
    /// Nothing.
    pub const NONE: Permissions = Permissions(0);
    /// Everything.
    pub const ALL: Permissions = Permissions(Self::MASK);

    /// This set and `permission`.
    #[must_use]
    pub fn with(self, permission: Permission) -> Self {
        Permissions(self.0 | permission as u16)
    }

    /// Whether `permission` is in the set.
    pub fn has(self, permission: Permission) -> bool {
        self.0 & permission as u16 != 0
    }
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bits = u16::deserialize(from)?;
        if bits & !Self::MASK == 0 { Ok(Permissions(bits)) } else { Err(de::Error::custom("unknown permission")) }
    }
}
