//! Cold files and slow disks: who waits for a disk waits alone.
//!
//! One worker serves everybody here, so that whoever is held up by another's disk shows.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use e2e::{Daemon, Site, ftp::Client, root_or_skip, slow::Slow, tree, until};
use nix::sys::signal::Signal;

/// What no answer on a quiet session takes beside a slow disk: the disk takes longer than that for one page.
const PROMPT: Duration = Duration::from_millis(250);
const SLOW: Duration = Duration::from_millis(400);
/// What some megabytes on a disk that works may take beside one that hangs for a minute.
const BESIDE: Duration = Duration::from_secs(20);

/// A daemon with one worker, whose alice lives on a slow disk; `None` when this machine cannot have one.
fn slow(scenario: &str, settings: &[&str]) -> Option<(Slow, Daemon)> {
    if !root_or_skip(scenario) {
        return None;
    }
    let mut site = Site::new();
    site.set("workers = 1");
    for line in settings {
        site.set(line);
    }
    let account = site.account("alice");
    let slow = Slow::new(&account.home, account.uid)?;
    Some((slow, Daemon::start(site)))
}

/// Says NOOP, and now and then transfers a file, until `over`; nothing takes longer than [`PROMPT`].
fn stays_prompt(client: &mut Client, over: &AtomicBool) {
    let content = tree::content(300_000, 3);
    let mut rounds = 0;
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        client.expect("NOOP", &[200]);
        if rounds % 8 == 0 {
            client.stored("STOR small", &content[..16 << 10]);
            assert!(client.fetch("RETR small") == content[..16 << 10]);
        }
        assert!(began.elapsed() < PROMPT, "an answer took {:?}", began.elapsed());
        rounds += 1;
        thread::sleep(Duration::from_millis(10));
    }
    assert!(rounds > 4, "{rounds} answers");
}

/// Does something slow while another session of the worker must stay prompt.
fn beside(daemon: &Daemon, slowly: impl FnOnce()) {
    let mut other = daemon.login("bob");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let prompt = scope.spawn(|| stays_prompt(&mut other, &over));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(slowly));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
        prompt.join().expect("the other session stayed prompt");
    });
}

#[test]
fn a_file_on_a_slow_disk_is_sent_and_received_while_others_are_answered() {
    let Some((slow, daemon)) = slow("a slow disk", &[]) else { return };
    let content = tree::content(600_000, 1);
    slow.put("f", &content);
    slow.takes(SLOW);
    for kind in ["TYPE I", "TYPE A"] {
        let mut client = daemon.login("alice");
        client.expect(kind, &[200]);
        beside(&daemon, || {
            let got = client.fetch("RETR f");
            assert!(kind == "TYPE A" || got == content);
            client.stored("STOR g", &content);
            assert!(kind == "TYPE A" || slow.content("g").as_ref() == Some(&content));
            if kind == "TYPE I" {
                client.expect("SITE CPFR f", &[350]);
                client.expect("SITE CPTO h", &[250]);
                assert!(slow.content("h").as_ref() == Some(&content));
                client.expect("XCRC f", &[250]);
            }
        });
        client.in_step();
    }
}

/// Begins a transfer and reads its 150.
fn begun(daemon: &Daemon, line: &str) -> (Client, TcpStream) {
    let mut client = daemon.login("alice");
    let connection = client.passive();
    client.expect(line, &[150]);
    (client, connection)
}

#[test]
fn a_disk_that_hangs_ends_its_transfers_by_time_out_and_harms_nobody_else() {
    let Some((slow, daemon)) = slow("a disk that hangs", &["stall_timeout_secs = 2"]) else { return };
    let content = tree::content(300_000, 2);
    // One for each: the kernel has whoever opens a file wait for those who read it on this file system.
    (0..10).for_each(|number| slow.put(&format!("f{number}"), &content));
    let worker = daemon.workers()[0];
    let files = || worker.descriptors().into_iter().filter(|to| to.starts_with('/') && to != "/dev/null").collect();
    let before: Vec<String> = files();
    slow.holds(true);
    beside(&daemon, || {
        // More than there are helper threads, both ways.
        let mut waiting: Vec<_> = (0..8)
            .map(|number| {
                let (client, mut connection) = begun(
                    &daemon,
                    &if number % 2 == 0 { format!("RETR f{number}") } else { format!("STOR up{number}") },
                );
                if number % 2 == 1 {
                    connection.write_all(&content).expect("send");
                }
                (client, connection)
            })
            .collect();
        // ABOR is answered while the helper hangs.
        let (mut client, mut connection) = begun(&daemon, "RETR f8");
        client.expect("ABOR", &[426]);
        client.expect_reply(&[226, 225]);
        assert_eq!(connection.read(&mut [0; 9]).expect("the end"), 0);
        for (client, _) in &mut waiting {
            client.expect_reply(&[426, 451]);
            client.expect("NOOP", &[200]);
        }
    });
    slow.holds(false);
    until("all files are closed", || (files() == before).then_some(()));
    let mut client = daemon.login("alice");
    assert!(client.fetch("RETR f9") == content);
    client.stored("STOR again", &content);
    assert!(slow.content("again") == Some(content));
}

#[test]
fn transfers_that_hang_on_one_disk_leave_helpers_to_those_on_another() {
    if !root_or_skip("two disks, of which one hangs") {
        return;
    }
    let mut site = Site::new();
    site.set("workers = 1").set("stall_timeout_secs = 60");
    let (home, uid) = (site.account("alice").home.clone(), site.account("alice").uid);
    // Two accounts have files there: it is the disk that has to be told from others, not the account.
    site.add_account("carol", uid).home = home.clone();
    let Some(slow) = Slow::new(&home, uid) else { return };
    let content = tree::content(1_000_000, 6);
    (0..12).for_each(|number| slow.put(&format!("f{number}"), &content));
    let daemon = Daemon::start(site);
    let mut bob = daemon.login("bob");
    slow.holds(true);
    let _hanging: Vec<_> = (0..12)
        .map(|number| {
            let name = if number % 2 == 0 { "alice" } else { "carol" };
            let mut client = daemon.login(name);
            let mut connection = client.passive();
            // The second of each two is the other way round.
            if number % 4 < 2 {
                client.expect(format!("RETR f{number}"), &[150]);
            } else {
                client.expect(format!("STOR up{number}"), &[150]);
                connection.write_all(&content[..200_000]).expect("send");
            }
            (client, connection)
        })
        .collect();
    let began = Instant::now();
    bob.socket().set_read_timeout(Some(BESIDE)).expect("SO_RCVTIMEO");
    for name in ["g", "h"] {
        bob.stored(format!("STOR {name}"), &content);
        bob.expect(format!("XCRC {name}"), &[250]);
        assert!(bob.fetch(format!("RETR {name}")) == content);
    }
    bob.expect("SITE CPFR g", &[350]);
    bob.expect("SITE CPTO copy", &[250]);
    until("bob's files are closed", || {
        let open = daemon.workers()[0].descriptors();
        let homes = daemon.home("bob", "");
        (!open.iter().any(|file| homes.to_str().is_some_and(|home| file.starts_with(home)))).then_some(())
    });
    assert!(began.elapsed() < BESIDE, "it took {:?}", began.elapsed());
    slow.holds(false);
}

/// Bytes that the helper threads of a process have read, as /proc tells (`rchar`).
fn read_by_helpers(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("tasks").flatten();
    threads
        .filter(|thread| thread.file_name().to_str() != Some(&pid.to_string()))
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("io")).ok()?;
            text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok())
        })
        .sum()
}

#[test]
fn a_file_that_is_not_in_the_page_cache_is_read_by_a_helper_and_one_that_is_by_the_loop() {
    if !root_or_skip("a cold file") {
        return;
    }
    let mut site = Site::new();
    site.set("workers = 1");
    let daemon = Daemon::start(site);
    let content = tree::content(20 << 20, 4);
    let path = daemon.put("alice", "f", &content);
    let file = fs::File::open(&path).expect("open");
    let kind = rustix::fs::fstatfs(&file).expect("statfs").f_type;
    if ![0xef53, 0x5846_5342, 0x9123_683e].contains(&kind) {
        e2e::skipped("cold files on a disk", "needs a directory for temporary files on a disk");
        return;
    }
    let worker = daemon.workers()[0];
    let mut client = daemon.login("alice");
    for (kind, line) in [("TYPE I", "RETR f"), ("TYPE A", "RETR f"), ("TYPE I", "XCRC f")] {
        client.expect(kind, &[200]);
        rustix::fs::fsync(&file).expect("fsync");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("fadvise");
        let before = read_by_helpers(worker.pid);
        if line == "XCRC f" {
            client.expect(line, &[250]);
        } else {
            let got = client.fetch(line);
            assert!(kind == "TYPE A" || got == content);
        }
        let cold = read_by_helpers(worker.pid) - before;
        assert!(cold > 0, "{kind} {line}: a helper was asked");
    }
    client.expect("TYPE I", &[200]);
    client.fetch("RETR f");
    let before = read_by_helpers(worker.pid);
    assert!(client.fetch("RETR f") == content);
    assert_eq!(read_by_helpers(worker.pid), before, "the second time it is in the page cache");
    client.expect(format!("REST {}", (19 << 20) + 5), &[350]);
    assert!(client.fetch("RETR f") == content[(19 << 20) + 5..]);
}

#[test]
fn uploads_to_a_disk_are_whole_whoever_writes_them() {
    if !root_or_skip("uploads to a disk") {
        return;
    }
    let daemon = Daemon::start(Site::new());
    let mut client = daemon.login("alice");
    for size in [0, 1, 65_535, 65_536, 65_537, 131_073, 9 << 20] {
        let content = tree::content(size, size as u64);
        client.stored("STOR f", &content);
        assert!(fs::read(daemon.home("alice", "f")).expect("read") == content, "{size}");
        client.expect("TYPE A", &[200]);
        client.stored("STOR t", &b"line\r\n".repeat(size / 6));
        assert!(fs::read(daemon.home("alice", "t")).expect("read") == b"line\n".repeat(size / 6), "{size}");
        client.expect("TYPE I", &[200]);
        client.expect("DELE f", &[250]);
    }
}

#[test]
fn with_sync_uploads_the_disk_has_a_file_before_it_is_acknowledged() {
    for atomic in ["atomic_uploads = false", "atomic_uploads = true"] {
        let settings = ["sync_uploads = true", "stall_timeout_secs = 30", atomic];
        let Some((slow, daemon)) = slow("a disk that is slow to sync", &settings) else { return };
        let content = tree::content(200_000, 5);
        let mut client = daemon.login("alice");
        for (number, size) in [0, 100, 200_000].into_iter().enumerate() {
            client.stored(format!("STOR f{number}"), &content[..size]);
            assert!(slow.content(&format!("f{number}")).as_deref() == Some(&content[..size]));
            assert!(slow.syncs() > number, "{size}: it was synced");
        }
        let mut connection = client.passive();
        client.expect("STOR held", &[150]);
        connection.write_all(&content).expect("send");
        until("the bytes have arrived", || {
            let names = slow.names();
            let name = names.iter().find(|name| name.contains("held"))?;
            (slow.content(name)?.len() == content.len()).then_some(())
        });
        slow.holds(true);
        drop(connection);
        beside(&daemon, || assert!(client.is_silent_for(Duration::from_millis(600)), "not yet synced"));
        slow.holds(false);
        client.expect_reply(&[226]);
        slow.fails_to_sync(true);
        assert_eq!(client.store("STOR lost", &content).code, 451);
        daemon.logged(&["op=STOR", "/lost", "result=file-error"]);
        if atomic.ends_with("true") {
            assert_eq!(slow.content("lost"), None, "what is not on the disk is not published");
            until("and removed", || slow.names().iter().all(|name| !name.contains("lost")).then_some(()));
        }
        client.in_step();
    }
}

#[test]
fn a_file_longer_than_the_service_may_write_fails_alone() {
    if !root_or_skip("RLIMIT_FSIZE") {
        return;
    }
    const LIMIT: usize = 16 << 20;
    let mut site = Site::new();
    site.set("workers = 1");
    site.write();
    let mut command = Command::new("sh");
    // POSIX: in blocks of 512 bytes.
    command.arg("-c").arg(format!("ulimit -f {} && exec \"$0\" -f \"$1\"", LIMIT / 512));
    command.arg(site.programs.join("caissond")).arg(site.config());
    let daemon = Daemon::run(site, command);
    let (mut client, mut other) = (daemon.login("bob"), daemon.login("alice"));
    let content = tree::content(LIMIT + (4 << 20), 7);
    for kind in ["TYPE I", "TYPE A"] {
        client.expect(kind, &[200]);
        let mut connection = client.passive();
        client.expect("STOR long", &[150]);
        // It is closed before all is sent.
        let _ = connection.write_all(&content);
        drop(connection);
        client.expect_reply(&[552]);
        other.in_step();
    }
    client.expect("TYPE I", &[200]);
    client.stored("STOR short", &content[..LIMIT]);
    assert!(client.fetch("RETR short") == content[..LIMIT]);
    client.in_step();
    other.in_step();
}

#[test]
fn a_home_on_a_disk_that_is_gone_keeps_out_its_own_account_alone() {
    if !root_or_skip("a home on a disk that is gone") {
        return;
    }
    let mut site = Site::new();
    site.set("login_timeout_secs = 8");
    let account = site.account_mut("alice");
    let mount = account.home.clone();
    account.home = mount.join("home");
    let Some(slow) = Slow::new(&mount, account.uid) else { return };
    slow.put("home", b"no directory");
    let mut daemon = Daemon::start(site);
    let gone = slow.gone();
    let mut alice = daemon.connect();
    alice.expect("USER alice", &[331]);
    alice.send("PASS correct horse");
    beside(&daemon, || {
        let refusal = alice.reply();
        assert!(refusal.is(4) || refusal.is(5), "{refusal:?}");
    });
    // Nor is there one process more for each who tries.
    for _ in 0..3 {
        let mut again = daemon.connect();
        again.ask("USER alice");
        let refusal = again.ask("PASS correct horse");
        assert!(refusal.is(4) || refusal.is(5), "{refusal:?}");
    }
    daemon.logged(&["broker alice", "did not start"]);
    assert!(daemon.brokers().len() <= 2, "{:?}", daemon.brokers());
    drop(gone);
    until("no broker of alice is left", || (daemon.brokers().len() <= 1).then_some(()));
    let refusal = {
        let mut again = daemon.connect();
        again.ask("USER alice");
        again.ask("PASS correct horse")
    };
    assert!(refusal.is(4) || refusal.is(5), "{refusal:?}");
    daemon.logged(&["broker alice", "home", "Not a directory"]);
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn a_stop_does_not_wait_for_a_process_that_a_disk_keeps_from_dying() {
    let Some((slow, mut daemon)) = slow("a stop beside a disk that hangs", &[]) else { return };
    let (_client, mut connection) = begun(&daemon, "STOR f");
    slow.holds(true);
    connection.write_all(&tree::content(300_000, 8)).expect("send");
    thread::sleep(SLOW);
    daemon.signal(Signal::SIGTERM);
    until("it says so", || daemon.log().contains("left behind what SIGKILL does not end").then_some(()));
    until("the monitor has ended", || (!daemon.monitor.is_alive()).then_some(()));
    // Whoever starts it again finds its port free.
    std::net::TcpListener::bind(daemon.address()).expect("the port is free");
    slow.holds(false);
    assert_eq!(daemon.wait().code(), Some(0));
}
