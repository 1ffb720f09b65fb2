//! The protocol, verb by verb, on raw connections: RFC 959, 1123, 2389, 2428, 2577, 2640, 3659.
//!
//! One file a topic in `ftp/`; each scenario starts a daemon of its own.

mod ftp {
    mod accounts;
    mod acknowledged;
    mod ascii;
    mod atomic;
    mod control_bytes;
    mod data;
    mod files;
    mod hosts;
    mod in_flight;
    mod lines;
    mod listing_time;
    mod listings;
    mod login;
    mod modes;
    mod permissions;
    mod proxies;
    mod session;
    mod site;
    mod sums;
    mod transfers;
    mod uploads;
}

/// A daemon for a scenario; `None` when this user cannot start one.
fn daemon(scenario: &str) -> Option<e2e::Daemon> {
    e2e::root_or_skip(scenario).then(|| e2e::Daemon::start(e2e::Site::new()))
}
