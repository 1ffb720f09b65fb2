//! Too many descriptors of one user on their way between processes (ETOOMANYREFS, sendmsg(2)): whoever keeps them there, it costs
//! the others single transfers, and nobody a session.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use e2e::{
    Daemon, Site, ftp,
    procs::Process,
    programs::{of_this_profile, place},
    root_or_skip,
};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// More descriptors than this are on their way, and no more than this may a process of the daemon have open.
const LIMIT: u64 = 400;

/// A daemon that is started with the limit.
fn limited(scenario: &str) -> Option<Daemon> {
    if !root_or_skip(scenario) {
        return None;
    }
    let site = Site::new();
    site.write();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"")]);
    command.arg(site.programs.join("caissond")).arg("-f").arg(site.config());
    Some(Daemon::run(site, command))
}

/// Keeps descriptors of a process's user on their way, more than the process may have open.
fn hold_up(daemon: &Daemon, process: Process) -> Child {
    // Where root may raise its limit, the monitor has, and we may lower this process's; elsewhere neither of us may.
    let limit = Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) };
    let _ = prlimit(Pid::from_raw(process.pid.cast_signed()), Resource::Nofile, limit);
    // The user may not reach the checkout.
    let program = daemon.site.dir.join("descriptors-in-flight");
    place(&of_this_profile().join("descriptors-in-flight"), &program);
    let uid = process.status()["Uid"].split_whitespace().next().and_then(|uid| uid.parse().ok()).expect("a uid");
    let mut command = Command::new(program);
    command.arg((LIMIT + 50).to_string()).uid(uid).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = command.spawn().expect("descriptors-in-flight");
    let mut line = String::new();
    BufReader::new(holder.stdout.take().expect("its output")).read_line(&mut line).expect("ready");
    assert_eq!(line, "ready\n");
    holder
}

fn let_go(mut holder: Child) {
    drop(holder.stdin.take());
    assert!(holder.wait().expect("wait").success());
}

#[test]
fn a_control_connection_that_cannot_be_passed_is_425_and_the_session_goes_on() {
    let Some(daemon) = limited("descriptors in flight, worker") else { return };
    daemon.put("alice", "f", b"content");
    let mut client = daemon.login("alice");
    let holder = hold_up(&daemon, daemon.worker_of(&client));
    let _listener = client.active();
    let reply = client.ask("RETR f");
    let last = if reply.is(1) { client.reply() } else { reply };
    assert_eq!(last.code, 425, "{last:?}");
    // What passes no descriptor of the worker's goes on all the while.
    assert_eq!(client.fetch("RETR f"), b"content");
    let_go(holder);
    let listener = client.active();
    client.expect("RETR f", &[150]);
    assert_eq!(ftp::drain(ftp::accept(&listener)), b"content");
    client.expect_reply(&[226]);
}

#[test]
fn a_file_that_cannot_be_passed_is_450_and_the_session_goes_on() {
    let Some(daemon) = limited("descriptors in flight, broker") else { return };
    daemon.put("alice", "f", b"content");
    let mut client = daemon.login("alice");
    let holder = hold_up(&daemon, daemon.brokers()[0]);
    for line in ["RETR f", "LIST"] {
        assert_eq!(client.try_fetch(line).expect_err("it cannot be passed").code, 450, "{line}");
    }
    client.expect("SIZE f", &[213]);
    let_go(holder);
    assert_eq!(client.fetch("RETR f"), b"content");
    assert_eq!(client.list("LIST").len(), 1);
}
