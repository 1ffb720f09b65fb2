//! Why a login is refused: for the log, never for the client.

/// Why a login is refused, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is not the password.
    WrongPassword,
    /// No account has the name.
    Unknown,
    /// The account is locked.
    Locked,
    /// The account belongs to hosts that the client has not named.
    OtherHost,
    /// The account demands TLS, and the control connection has none.
    NoTls,
    /// The account has no hash.
    NoPassword,
    /// The client has shown no certificate, under TLS 1.3.
    NoCertificate,
    /// The certificate is not the account's.
    WrongCertificate,
    /// The client's proof that the certificate is its own has let somebody in already.
    UsedCertificate,
}

impl Reason {
    /// All, in the order of caisson-authd(8).
    pub const ALL: [Reason; 9] = [
        Reason::WrongPassword,
        Reason::Unknown,
        Reason::Locked,
        Reason::OtherHost,
        Reason::NoTls,
        Reason::NoPassword,
        Reason::NoCertificate,
        Reason::WrongCertificate,
        Reason::UsedCertificate,
    ];

    /// As the log has it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::WrongPassword => "wrong-password",
            Reason::Unknown => "unknown",
            Reason::Locked => "locked",
            Reason::OtherHost => "other-host",
            Reason::NoTls => "no-tls",
            Reason::NoPassword => "no-password",
            Reason::NoCertificate => "no-certificate",
            Reason::WrongCertificate => "wrong-certificate",
            Reason::UsedCertificate => "used-certificate",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caisson_authd_8_lists_every_reason() {
        let page = include_str!("../../man/caisson-authd.8");
        let (_, listed) = page.split_once(".Cm why\nis\n").unwrap();
        let (listed, _) = listed.split_once("\nand bytes").unwrap();
        let listed: Vec<_> = listed.split([' ', '\n', ',']).filter(|w| !["", ".Cm", "or"].contains(w)).collect();
        assert_eq!(listed, Reason::ALL.map(Reason::name));
    }
}
