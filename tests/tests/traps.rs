//! Faults other FTP servers have had, one scenario each: the names begin with the numbers of the project's list of
//! traps, the sources with each are public reports and specifications.
//!
//! One file a class in `traps/`. TLS and SFTP have their own.

mod traps {
    mod abort;
    mod addresses;
    mod auth;
    mod data_conn;
    mod device;
    mod limits;
    mod listing;
    mod names;
    mod paths;
    mod resume;
    mod sizes;
    mod timeouts;
}

/// A daemon for a scenario; `None` when this user cannot start one.
fn daemon(scenario: &str) -> Option<e2e::Daemon> {
    e2e::root_or_skip(scenario).then(|| e2e::Daemon::start(e2e::Site::new()))
}

/// A daemon with these lines in `caisson.toml`.
fn daemon_with(scenario: &str, lines: &[&str]) -> Option<e2e::Daemon> {
    if !e2e::root_or_skip(scenario) {
        return None;
    }
    let mut site = e2e::Site::new();
    for line in lines {
        site.set(line);
    }
    Some(e2e::Daemon::start(site))
}

/// Makes a file of zeros that takes no room.
fn sparse(daemon: &e2e::Daemon, name: &str, size: u64) {
    let file = std::fs::File::create(daemon.home("alice", name)).expect("create");
    file.set_len(size).expect("truncate");
}
