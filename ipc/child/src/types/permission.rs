//! What an account may do: operations, never names of commands, so that every protocol obeys the same row.

use super::Permissions;

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

impl Permissions {
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
