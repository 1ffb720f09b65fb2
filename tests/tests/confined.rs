//! The processes of a running daemon, seen from outside: how each is confined, and what a worker calls.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use e2e::{Daemon, Site, ftp, procs::Process, root_or_skip, site, until};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, User},
};

fn uid_of(name: &str) -> u32 {
    User::from_name(name).expect("getpwnam").unwrap_or_else(|| panic!("no user {name}")).uid.as_raw()
}

/// Checks one child: `uid` four times over, no capability, no new privileges, a filter.
fn assert_confined(who: &str, process: Process, uid: u32) {
    let status = process.status();
    let field = |name: &str| status.get(name).map_or("", String::as_str).to_owned();
    let ids: Vec<String> = field("Uid").split_whitespace().map(str::to_owned).collect();
    assert_eq!(ids, vec![uid.to_string(); 4], "{who}: uid");
    assert!(!field("Gid").split_whitespace().any(|g| g == "0"), "{who}: gid {}", field("Gid"));
    assert!(!field("Groups").split_whitespace().any(|g| g == "0"), "{who}: groups {}", field("Groups"));
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(u64::from_str_radix(&field(set), 16).ok(), Some(0), "{who}: {set} {}", field(set));
    }
    assert_eq!(field("Seccomp"), "2", "{who}: Seccomp");
    assert_eq!(field("NoNewPrivs"), "1", "{who}: NoNewPrivs");
}

#[test]
fn every_process_of_a_running_daemon_is_confined() {
    if !root_or_skip("confined") {
        return;
    }
    let daemon = Daemon::start(Site::new());
    let _sessions = (daemon.login("alice"), daemon.login("bob"));
    assert_eq!(daemon.workers().len(), 2, "workers = 2");
    for worker in daemon.workers() {
        assert_confined("worker", worker, uid_of(site::WORKER_USER));
    }
    assert_confined("authd", daemon.authd(), uid_of(site::AUTHD_USER));
    let mut uids: Vec<u32> = Vec::new();
    for broker in daemon.brokers() {
        let uid: u32 = broker.status()["Uid"].split_whitespace().next().and_then(|u| u.parse().ok()).expect("a uid");
        assert_confined("broker", broker, uid);
        uids.push(uid);
    }
    uids.sort_unstable();
    assert_eq!(uids, [daemon.site.account("alice").uid, daemon.site.account("bob").uid]);
    let monitor = daemon.monitor.status();
    assert_eq!((monitor["Seccomp"].as_str(), monitor["NoNewPrivs"].as_str()), ("2", "1"), "monitor");
    let caps = u64::from_str_radix(&monitor["CapEff"], 16).expect("hexadecimal");
    assert!(caps.count_ones() <= 12, "the monitor keeps {caps:x}");
    assert_eq!(monitor["CapBnd"], monitor["CapEff"], "the monitor can regain nothing");
}

#[test]
fn every_child_has_namespaces_and_a_root_of_its_own() {
    if !root_or_skip("namespaces") {
        return;
    }
    let daemon = Daemon::start(Site::new());
    daemon.put("alice", "alices", b"");
    let _session = daemon.login("alice");
    let ours = Process::of(std::process::id()).expect("ourselves");
    let mut seen = vec![ours.link("ns/mnt").expect("a mount namespace")];
    let broker = daemon.brokers()[0];
    for child in daemon.workers().into_iter().chain([daemon.authd(), broker]) {
        let own = child.link("ns/mnt").expect("a mount namespace");
        assert!(!seen.contains(&own), "{own} is shared");
        seen.push(own);
        for kind in ["ns/net", "ns/ipc"] {
            assert_ne!(child.link(kind), ours.link(kind), "{kind}");
        }
    }
    for child in daemon.workers().into_iter().chain([daemon.authd()]) {
        assert_eq!(child.root_entries(), Some(Vec::new()), "the root of {child:?}");
    }
    assert_eq!(broker.root_entries(), Some(vec!["alices".to_owned()]));
    for child in daemon.workers().into_iter().chain([daemon.authd(), broker]) {
        let held = child.descriptors();
        assert!(held.len() < 200, "{held:?}");
        let ledger = held.iter().filter(|d| d.starts_with("/memfd:ledger ")).count();
        assert_eq!(ledger, if daemon.workers().contains(&child) { 2 } else { 0 }, "a region of each worker: {held:?}");
        let files = held.iter().filter(|d| d.starts_with('/') && *d != "/dev/null" && *d != "/");
        assert_eq!(files.count(), ledger, "{held:?}");
    }
}

#[test]
fn an_ordinary_user_s_daemon_is_filtered_too() {
    let daemon = Daemon::serve_as_ordinary_user(Site::new());
    let _session = daemon.login("alice");
    let uid = daemon.site.account("alice").uid;
    for process in daemon.everybody() {
        let status = process.status();
        let name = &status["Name"];
        assert_eq!(status["Seccomp"], "2", "{name}");
        assert_eq!(status["NoNewPrivs"], "1", "{name}");
        assert_eq!(u64::from_str_radix(&status["CapEff"], 16).ok(), Some(0), "{name}");
        assert!(status["Uid"].split_whitespace().all(|u| u == uid.to_string()), "{name}");
    }
    // The log says what is weaker than as root.
    let log = daemon.log().to_lowercase();
    assert!(log.contains("without root") || log.contains("not started by root"), "{log}");
}

/// strace of one process and all its threads.
struct Strace {
    child: Child,
    output: std::path::PathBuf,
}

impl Strace {
    fn of(process: Process, calls: &str, output: &Path) -> Self {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e"]).arg(format!("trace={calls}")).arg("-o").arg(output);
        command.arg("-p").arg(process.pid.to_string()).stderr(Stdio::null());
        let child = command.spawn().expect("start strace (tests/setup installs it)");
        let tracer = child.id().to_string();
        until("strace is attached", || (process.status().get("TracerPid") == Some(&tracer)).then_some(()));
        Strace { child, output: output.to_path_buf() }
    }

    /// Detaches, and returns the lines.
    fn stop(mut self) -> Vec<String> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT).expect("end strace");
        self.child.wait().expect("wait for strace");
        let text = fs::read(&self.output).expect("the trace");
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_worker_makes_no_path_call_in_a_thousand_transfers() {
    if !root_or_skip("strace") {
        return;
    }
    let mut site = Site::new();
    site.set("workers = 1");
    let daemon = Daemon::start(site);
    daemon.put("alice", "small", &[b's'; 16 << 10]);
    let worker = daemon.workers()[0];
    // %file is every call that takes the name of a file; the others make sockets, or turn a descriptor into more.
    let calls = "%file,socket,socketpair,connect,bind,listen,fchdir,getdents64,fchmod,fchown,clone,clone3,fork,vfork,\
                 ioctl,sendfile,splice";
    let strace = Strace::of(worker, calls, &daemon.site.dir.join("trace"));
    let mut client = daemon.login("alice");
    for number in 0..250 {
        assert_eq!(client.fetch("RETR small").len(), 16 << 10);
        client.stored(format!("STOR up{}", number % 10), &[b'u'; 16 << 10]);
        let listener = client.active();
        client.expect("RETR small", &[150, 125]);
        assert_eq!(ftp::drain(ftp::accept(&listener)).len(), 16 << 10);
        client.expect_reply(&[226]);
        let listener = client.active();
        client.expect(format!("STOR act{}", number % 10), &[150, 125]);
        std::io::Write::write_all(&mut ftp::accept(&listener), &[b'a'; 16 << 10]).expect("send");
        client.expect_reply(&[226]);
    }
    client.list("LIST");
    client.expect("MKD d", &[257]);
    let lines = strace.stop();
    assert!(daemon.workers() == [worker], "the worker lived through it");
    let count = |name: &str| lines.iter().filter(|l| l.contains(&format!(" {name}("))).count();
    assert!(count("sendfile") >= 500, "downloads go by sendfile: {}", count("sendfile"));
    assert!(count("splice") >= 500, "uploads go by splice: {}", count("splice"));
    let allowed = |line: &str| {
        let call = line.split_once(' ').map_or(line, |(_, call)| call.trim_start());
        let moves = ["sendfile(", "splice(", "<... ", "--- ", "+++ "].iter().any(|p| call.starts_with(p));
        let of_descriptor = call.starts_with("newfstatat(") && call.contains("\"\"") && call.contains("AT_EMPTY_PATH");
        let harmless = call.starts_with("ioctl(") && call.contains("SIOCOUTQNSD");
        moves || of_descriptor || harmless
    };
    let forbidden: Vec<&String> = lines.iter().filter(|l| !allowed(l)).collect();
    assert!(forbidden.is_empty(), "{} calls, such as {:?}", forbidden.len(), &forbidden[..forbidden.len().min(5)]);
}
