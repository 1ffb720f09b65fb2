//! FTPS with the real daemon: resumption and endings (traps T01 to T05, T33 and T34), policies, what no process may
//! remember, clients that are broken or hostile, and a signer that is slow or gone.

mod ftps {
    mod endings;
    mod hostile;
    mod logins;
    mod memory;
    mod policy;
    mod refused;
    mod signer;
    mod tickets;
    mod wire;
}

/// A place with a certificate, for a scenario; `None` when this user cannot start a daemon.
fn site(scenario: &str) -> Option<e2e::Site> {
    e2e::root_or_skip(scenario).then(|| {
        let mut site = e2e::Site::new();
        site.certify();
        site
    })
}
