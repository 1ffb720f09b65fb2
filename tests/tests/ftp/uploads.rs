//! Uploads that cannot lie: 226 only for a file that is whole; what was cut stays as far as it came, as caissond(8) says.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use e2e::{Daemon, Site, root_or_skip, tree, until};
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::signal::Signal,
};

use crate::daemon;

/// A small file system in memory, for as long as this lives.
pub(super) struct Small(PathBuf);

impl Small {
    pub(super) fn new(at: &Path, uid: u32, bytes: usize) -> Self {
        let options = format!("size={bytes},uid={uid},gid={uid},mode=755");
        mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::empty(), Some(options.as_str())).expect("mount a tmpfs");
        Small(at.to_owned())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // The account's broker has it in a mount namespace of its own, and lets go of it when it ends.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_is_told_and_never_226() {
    if !root_or_skip("a full disk") {
        return;
    }
    let site = Site::new();
    let account = site.account("alice");
    let small = Small::new(&account.home, account.uid, 1 << 20);
    let daemon = Daemon::start(site);
    let _small = small;
    let content = tree::content(3 << 20, 15);
    let mut client = daemon.login("alice");
    for (kind, line) in [("TYPE I", "STOR f"), ("TYPE A", "STOR f"), ("TYPE I", "APPE g"), ("TYPE I", "STOU h")] {
        client.expect(kind, &[200]);
        let mut connection = client.passive();
        client.expect(line, &[150]);
        // The server closes when it can take no more.
        let _ = connection.write_all(&content);
        drop(connection);
        client.expect_reply(&[452, 552]);
        let name = client.list("NLST").first().expect("what was stored stays").clone();
        let part = fs::read(daemon.home("alice", &name)).expect("the part");
        assert!(part.len() <= 1 << 20);
        if kind == "TYPE I" {
            assert!(
                !part.is_empty() && content.starts_with(&part),
                "{line}: the part is what was sent, from its start"
            );
        }
        client.expect(format!("DELE {name}"), &[250]);
        client.expect("TYPE I", &[200]);
        client.stored("STOR fits", &content[..500_000]);
        assert!(client.fetch("RETR fits") == content[..500_000]);
        if line == "STOU h" {
            client.stored("STOR half", &content[..500_000]);
            client.expect("SITE CPFR half", &[350]);
            client.expect("SITE CPTO copy", &[452]);
        }
        client.expect("DELE fits", &[250]);
    }
    client.in_step();
}

#[test]
fn what_was_acknowledged_is_whole_and_what_was_not_is_a_beginning_after_the_death_of_a_worker() {
    let Some(daemon) = daemon("a killed worker") else { return };
    let content = tree::content(2 << 20, 16);
    let mut client = daemon.login("alice");
    client.stored("STOR whole", &content);
    let mut connection = client.passive();
    client.expect("STOR part", &[150]);
    connection.write_all(&content[..1_000_000]).expect("send");
    let part = daemon.home("alice", "part");
    until("the bytes have arrived", || fs::metadata(&part).ok().filter(|meta| meta.len() == 1_000_000).map(|_| ()));
    daemon.worker_of(&client).signal(Signal::SIGKILL);
    assert!(client.reply_or_end().is_none(), "nobody says 226");
    assert!(fs::read(&part).expect("read") == content[..1_000_000]);
    assert!(fs::read(daemon.home("alice", "whole")).expect("read") == content);
    let mut client = daemon.login("alice");
    client.expect("REST 1000000", &[350]);
    client.stored("STOR part", &content[1_000_000..]);
    assert!(fs::read(&part).expect("read") == content, "and can be gone on with");
}

#[test]
fn an_upload_whose_client_vanishes_stays_as_far_as_it_came() {
    let Some(daemon) = daemon("a vanished client") else { return };
    let content = tree::content(1 << 20, 17);
    let part = daemon.home("alice", "part");
    for control_too in [false, true] {
        let _ = fs::remove_file(&part);
        let mut client = daemon.login("alice");
        let mut connection = client.passive();
        client.expect("STOR part", &[150]);
        connection.write_all(&content[..600_000]).expect("send");
        until("the bytes have arrived", || fs::metadata(&part).ok().filter(|meta| meta.len() == 600_000).map(|_| ()));
        if control_too {
            // A control connection that breaks is an abort (RFC 959 4.1.1).
            drop(client);
            daemon.logged(&["disconnect"]);
            drop(connection);
        } else {
            rustix::net::sockopt::set_socket_linger(&connection, Some(Duration::ZERO)).expect("setsockopt");
            drop(connection);
            client.expect_reply(&[426]);
            client.in_step();
        }
        assert!(fs::read(&part).expect("read") == content[..600_000]);
    }
    assert!(!daemon.log().contains("result=complete"), "{}", daemon.log());
}
