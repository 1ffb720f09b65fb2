//! A worker that was taken over, sandbox and all, against monitor, authd and brokers: it gets nothing, is ended, and
//! nobody else notices (issue 2 point 4).
//!
//! `hostile-worker` (tests/src/bin) is moved by the scenario; beside it an honest worker serves bob throughout.

mod hostile {
    mod authd;
    mod broker;
    mod monitor;
}

use e2e::{
    Daemon,
    ftp::Client,
    puppet::{Link, Puppet},
    root_or_skip, until,
};

/// A daemon with one honest worker, on which bob has a session, and one hostile one.
struct Scene {
    daemon: Daemon,
    puppet: Option<Puppet>,
    bob: Client,
}

impl Scene {
    fn set(scenario: &str) -> Option<Self> {
        Self::set_on(scenario, Puppet::stage(env!("CARGO_BIN_EXE_hostile-worker")))
    }

    fn set_on(scenario: &str, site: e2e::Site) -> Option<Self> {
        if !root_or_skip(scenario) {
            return None;
        }
        let daemon = Daemon::start(site);
        daemon.put("alice", "f", b"alice's");
        daemon.put("bob", "f", b"bob's");
        let puppet = Some(Puppet::take_over(&daemon));
        // The hostile worker serves one connection, and that is ours: bob's session is the honest one's.
        let bob = daemon.login("bob");
        Some(Scene { daemon, puppet, bob })
    }

    fn puppet(&mut self) -> &mut Puppet {
        self.puppet.as_mut().expect("not ended yet")
    }

    /// Checks that the hostile worker is ended for what it did on `link`, an honest one takes its place, and nobody
    /// else noticed.
    fn judge(mut self, link: Link, what: &str) {
        let puppet = self.puppet.take().expect("not ended yet");
        let hostile = puppet.process;
        puppet.is_ended(link, what);
        // By the monitor, and for the breach: a puppet that stumbles over its own feet proves nothing.
        let line = self.daemon.logged(&[&format!("pid={} ", hostile.pid), "how=\"signal 9\""]);
        let reasons = ["broke the contract of its link", "not allowed now", "asked authd twice"];
        // A record without a byte looks like the end of a link, and has no reason.
        assert!(what == "empty" || reasons.iter().any(|r| line.contains(r)), "{what}: {line}");
        self.unnoticed(what);
        until("a worker has taken its place", || {
            (self.daemon.workers().len() == 2 && !self.daemon.workers().contains(&hostile)).then_some(())
        });
        assert_eq!(self.daemon.login("alice").fetch("RETR f"), b"alice's", "{what}");
    }

    /// Checks that bob's session goes on: control, broker, and both kinds of data connection.
    fn unnoticed(&mut self, what: &str) {
        assert_eq!(self.bob.fetch("RETR f"), b"bob's", "{what}");
        self.bob.stored("STOR g", b"new");
        let listener = self.bob.active();
        self.bob.expect("RETR f", &[150, 125]);
        assert_eq!(e2e::ftp::drain(e2e::ftp::accept(&listener)), b"bob's", "{what}");
        self.bob.expect_reply(&[226]);
    }
}
