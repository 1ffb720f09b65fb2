//! The admin's side of a running daemon: caissonctl over the control socket, systemd's notifications, the quick start.

use std::{
    fs,
    io::Write,
    os::unix::{fs::MetadataExt, net::UnixDatagram},
    process::{Command, Output, Stdio},
    time::Duration,
};

use e2e::{Daemon, Site, root_or_skip, until};
use nix::sys::signal::Signal;

/// Runs caissonctl against the daemon's socket.
fn ctl(daemon: &Daemon, words: &[&str]) -> Output {
    let mut command = Command::new(daemon.site.programs.join("caissonctl"));
    command.arg("-s").arg(daemon.site.control_socket()).args(words).output().expect("run caissonctl")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn status_names_every_process_and_its_pid() {
    if !root_or_skip("status") {
        return;
    }
    let daemon = Daemon::start(Site::new());
    let _session = daemon.login("alice");
    let output = ctl(&daemon, &["status"]);
    assert!(output.status.success(), "{output:?}");
    let text = said(&output);
    for process in daemon.everybody() {
        assert!(text.contains(&process.pid.to_string()), "{} is missing:\n{text}", process.pid);
    }
}

#[test]
fn kick_ends_the_sessions_of_one_account() {
    if !root_or_skip("kick") {
        return;
    }
    let daemon = Daemon::start(Site::new());
    let (mut one, mut two) = daemon.login_at_two_workers("alice");
    let mut bob = daemon.login("bob");
    assert!(ctl(&daemon, &["kick", "alice"]).status.success());
    for session in [&mut one, &mut two] {
        session.expect_reply(&[421]);
        assert!(session.ends().is_empty());
    }
    bob.in_step();
    until("alice's broker has ended", || (daemon.brokers().len() == 1).then_some(()));
    daemon.login("alice").in_step();
    let unknown = ctl(&daemon, &["kick", "nobody-has-this"]);
    assert!(!unknown.status.success() || said(&unknown).contains('0'), "{unknown:?}");
}

#[test]
fn reload_tells_the_admin_what_is_wrong() {
    if !root_or_skip("reload") {
        return;
    }
    let mut daemon = Daemon::start(Site::new());
    daemon.site.set("banner = \"Anew\"");
    daemon.site.write();
    assert!(ctl(&daemon, &["reload"]).status.success());
    assert!(daemon.connect_greeting().contains("Anew"));
    daemon.site.set("workerz = 1");
    daemon.site.write();
    let refused = ctl(&daemon, &["reload"]);
    assert!(!refused.status.success());
    let text = said(&refused);
    assert!(text.contains("workerz") && text.contains("caisson.toml:"), "{text}");
}

#[test]
fn a_configuration_reader_that_hangs_keeps_nobody_waiting_but_the_admin() {
    if !root_or_skip("hanging caisson-config") {
        return;
    }
    let mut site = Site::new();
    let copies = site.copy_programs();
    let daemon = Daemon::start(site);
    // It reads its link for ever and answers nothing.
    e2e::programs::swap(&copies, "caisson-config", "/bin/cat");
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| ctl(&daemon, &["reload"]));
        daemon.login("alice").in_step();
        assert!(!reload.is_finished(), "the reload is still waited for");
        let refused = reload.join().expect("a thread");
        assert!(
            !refused.status.success() && said(&refused).contains("did not answer within 10 seconds"),
            "{refused:?}"
        );
    });
    daemon.logged(&["reload refused, nothing changed", "caisson-config"]);
}

#[test]
fn the_control_socket_is_roots_alone() {
    if !root_or_skip("control socket") {
        return;
    }
    let daemon = Daemon::start(Site::new());
    let meta = fs::metadata(daemon.site.control_socket()).expect("the socket");
    assert_eq!((meta.uid(), meta.mode() & 0o007), (0, 0), "mode {:o}", meta.mode());
    let mut command = Command::new("setpriv");
    let uid = e2e::site::ORDINARY_UID.to_string();
    command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups"]);
    let copies = daemon.site.dir.join("programs");
    e2e::programs::copy(&daemon.site.programs, &copies);
    command.arg(copies.join("caissonctl")).arg("-s").arg(daemon.site.control_socket()).arg("status");
    let output = command.output().expect("run setpriv");
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn systemd_is_told_when_it_is_ready_and_when_it_stops() {
    if !root_or_skip("sd_notify") {
        return;
    }
    let site = Site::new();
    site.write();
    let path = site.dir.join("notify");
    let socket = UnixDatagram::bind(&path).expect("bind");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("setsockopt");
    let mut command = Command::new(site.programs.join("caissond"));
    command.arg("-f").arg(site.config()).env("NOTIFY_SOCKET", &path);
    let mut daemon = Daemon::run(site, command);
    let told = |word: &str| {
        let mut bytes = [0; 1024];
        let found = (0..10).any(|_| {
            let count = socket.recv(&mut bytes).unwrap_or(0);
            String::from_utf8_lossy(&bytes[..count]).contains(word)
        });
        assert!(found, "{word} is not told");
    };
    told("READY=1");
    daemon.signal(Signal::SIGTERM);
    told("STOPPING=1");
    assert!(daemon.wait().success());
}

#[test]
fn a_hash_that_caissonctl_makes_lets_its_password_in() {
    if !root_or_skip("hash-password") {
        return;
    }
    let site = Site::new();
    let mut command = Command::new(site.programs.join("caissonctl"));
    let mut child = command.arg("hash-password").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start");
    child.stdin.take().expect("piped").write_all(b"fresh and new\n").expect("write");
    let output = child.wait_with_output().expect("wait");
    let hash = String::from_utf8(output.stdout).expect("text").trim().to_owned();
    assert!(hash.starts_with("$argon2id$v=19$m=65536,t=3,p=1$"), "{hash}");
    site.write();
    let text = fs::read_to_string(site.users()).expect("read");
    let old = text.lines().find(|l| l.starts_with("password")).expect("a password");
    e2e::site::write_private(&site.users(), &text.replacen(old, &format!("password = \"{hash}\""), 1));
    let mut command = Command::new(site.programs.join("caissond"));
    command.arg("-f").arg(site.config());
    let daemon = Daemon::run(site, command);
    let mut client = daemon.connect();
    client.login("alice", "fresh and new");
}

#[test]
fn quick_start_tells_how_to_connect_and_draws_a_password() {
    let site = Site::new();
    let home = site.account("alice").home.clone();
    fs::write(home.join("hello"), b"world").expect("write");
    let mut command = Command::new(site.programs.join("caissond"));
    command.arg("serve").arg(&home).arg("--ftp").arg(site.address.to_string());
    command.arg("--passive").arg(format!("{}-{}", site.passive.0, site.passive.1));
    let daemon = Daemon::run(site, command);
    let log = daemon.log();
    let line = log.lines().find_map(|l| Some(&l[l.find("curl ")?..])).unwrap_or_else(|| panic!("no curl line:\n{log}"));
    assert!(log.lines().any(|l| l.contains("lftp ")), "{log}");
    let output = Command::new("sh").arg("-c").arg(line).output().expect("run the line");
    assert!(said(&output).contains("hello"), "{line}: {output:?}");
}
