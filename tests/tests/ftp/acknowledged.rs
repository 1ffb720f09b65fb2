//! What has been acknowledged stays: neither a cut transfer nor the death of a client puts something else in its place.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use e2e::{Daemon, Site, ftp::Client, root_or_skip, tree, until};

/// How often a race is run: on code that loses it, one in ten runs is lost.
const RUNS: u64 = 80;

fn daemon(scenario: &str) -> Option<Daemon> {
    root_or_skip(scenario).then(|| Daemon::start(Site::new()))
}

/// Stores a few bytes under a name that something else was being written to, and sees that they are still there later.
fn stays(daemon: &Daemon, client: &mut Client, name: &str, run: u64) {
    let content = tree::content(12, run);
    client.stored(format!("STOR {name}"), &content);
    thread::sleep(Duration::from_millis(20));
    let found = fs::read(daemon.home("alice", name)).expect("read");
    assert!(found == content, "run {run}: {} bytes where 12 were acknowledged", found.len());
}

#[test]
fn an_upload_that_was_aborted_writes_nothing_behind_its_426() {
    let Some(daemon) = daemon("an aborted upload") else { return };
    let content = tree::content(8 << 20, 1);
    let mut client = daemon.login("alice");
    for run in 0..RUNS {
        let mut connection = client.passive();
        client.expect("STOR f", &[150]);
        thread::scope(|scope| {
            // It goes on sending, whatever is said on the control connection.
            scope.spawn(|| connection.write_all(&content));
            thread::sleep(Duration::from_millis(1) + Duration::from_micros(300 * (run % 20)));
            // It may be through already.
            client.expect("ABOR", &[426, 226]);
            client.expect_reply(&[226]);
            stays(&daemon, &mut client, "f", run);
        });
        fs::remove_file(daemon.home("alice", "f")).expect("remove");
    }
}

#[test]
fn a_copy_that_was_aborted_writes_nothing_behind_its_426() {
    let Some(daemon) = daemon("an aborted copy") else { return };
    daemon.put("alice", "big", &tree::content(32 << 20, 2));
    let mut client = daemon.login("alice");
    for run in 0..RUNS {
        client.expect("SITE CPFR big", &[350]);
        client.send("SITE CPTO f");
        thread::sleep(Duration::from_micros(300 + 100 * (run % 20)));
        client.expect("ABOR", &[426, 250]);
        client.expect_reply(&[226]);
        stays(&daemon, &mut client, "f", run);
    }
}

#[test]
fn a_client_that_is_killed_publishes_nothing() {
    if !root_or_skip("a killed client") {
        return;
    }
    let mut site = Site::new();
    site.set("atomic_uploads = true");
    let daemon = Daemon::start(site);
    let password = &daemon.site.account("alice").password;
    for run in 0..RUNS {
        let name = format!("f{run}");
        let mut curl = Command::new("curl")
            .args(["-sS", "-T", "-", "--user", &format!("alice:{password}")])
            .arg(format!("ftp://{}/{name}", daemon.address()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("curl");
        let mut input = curl.stdin.take().expect("its input");
        input.write_all(&tree::content(300_000, run)).expect("write");
        until("the upload has begun", || {
            fs::read_dir(daemon.home("alice", "")).expect("list").flatten().find(|entry| {
                let whole = entry.file_name().to_string_lossy().contains(&format!(".{name}.caisson-"));
                whole && entry.metadata().is_ok_and(|meta| meta.len() > 0)
            })
        });
        curl.kill().expect("kill");
        curl.wait().expect("wait");
    }
    let names = || -> Vec<_> {
        fs::read_dir(daemon.home("alice", "")).expect("list").flatten().map(|e| e.file_name()).collect()
    };
    until("everything hidden is gone", || {
        names().iter().all(|name| !name.to_string_lossy().contains(".caisson-")).then_some(())
    });
    assert!(names().is_empty(), "published: {:?}", names());
}
