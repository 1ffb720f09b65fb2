//! Nobody yet: the client has connected, or has sent REIN, or could not log in.

/// Nobody yet.
#[derive(Debug)]
pub struct NeedUser {
    /// Refused logins so far.
    pub failures: u32,
    /// TYPE A, for whoever logs in.
    pub text: bool,
}

impl Default for NeedUser {
    fn default() -> Self {
        // RFC 959 5.1: ASCII is the default type.
        NeedUser { failures: 0, text: true }
    }
}
