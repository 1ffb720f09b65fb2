//! Nobody yet: the client has connected, or has sent REIN.

/// Nobody yet.
#[derive(Debug, Default)]
pub struct NeedUser {
    /// Refused logins so far.
    pub failures: u32,
}
