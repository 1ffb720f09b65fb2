//! A daemon that cannot start says so in one clear line that names the setting and the remedy, exits with status 1
//! and leaves nothing running (issue 2, bars).

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    process::{Command, Output},
};

use e2e::{
    Daemon, Site,
    daemon::{Ended, run_to_end},
    root_or_skip, site,
};

/// Starts a daemon that must fail, and returns what it said.
fn fails(site: Site) -> String {
    let mut command = Command::new(site.programs.join("caissond"));
    command.arg("-f").arg(site.config());
    judge(run_to_end(site, command))
}

/// Checks that the failure is one line and status 1.
fn judge(ended: Ended) -> String {
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    let lines: Vec<&str> = ended.said.lines().filter(|l| !l.trim().is_empty()).collect();
    assert_eq!(lines.len(), 1, "one line:\n{}", ended.said);
    assert!(!ended.said.contains("panicked"), "{}", ended.said);
    lines[0].to_owned()
}

/// A written site, for scenarios that spoil one of its files.
fn written() -> Site {
    let site = Site::new();
    site.write();
    site
}

fn assert_names(line: &str, words: &[&str]) {
    for word in words {
        assert!(line.contains(word), "{word:?} is not named: {line}");
    }
}

#[test]
fn a_port_in_use_is_named_with_its_place_in_the_file() {
    if !root_or_skip("port in use") {
        return;
    }
    let site = written();
    let _taken = TcpListener::bind(site.address).expect("bind");
    let place = format!("{}:", site.config().display());
    let address = site.address.to_string();
    assert_names(&fails(site), &[&place, &address, "listen", "another port"]);
}

#[test]
fn an_address_this_machine_does_not_have_is_named() {
    if !root_or_skip("foreign address") {
        return;
    }
    let mut site = Site::new();
    site.address = "192.0.2.1:2121".parse().expect("an address");
    site.write();
    assert_names(&fails(site), &["192.0.2.1:2121", "interface"]);
}

#[test]
fn a_missing_system_user_is_named_with_the_command_that_makes_it() {
    if !root_or_skip("missing user") {
        return;
    }
    let mut site = Site::new();
    site.set("worker_user = \"_caisson-nobody-has-this\"");
    site.write();
    assert_names(&fails(site), &["worker_user", "_caisson-nobody-has-this", "useradd"]);
}

#[test]
fn a_missing_configuration_or_users_file_is_named() {
    if !root_or_skip("missing files") {
        return;
    }
    let site = written();
    fs::remove_file(site.users()).expect("remove");
    let users = site.users().display().to_string();
    assert_names(&fails(site), &[&users, "users_file"]);
    let site = written();
    fs::remove_file(site.config()).expect("remove");
    let config = site.config().display().to_string();
    assert_names(&fails(site), &[&config, "-f"]);
}

#[test]
fn a_users_file_that_others_may_write_read_or_own_is_refused() {
    if !root_or_skip("users file modes") {
        return;
    }
    let site = written();
    fs::set_permissions(site.users(), fs::Permissions::from_mode(0o660)).expect("chmod");
    assert_names(&fails(site), &["users.toml", "chmod go-w"]);
    for mode in [0o644, 0o604] {
        let site = written();
        fs::set_permissions(site.users(), fs::Permissions::from_mode(mode)).expect("chmod");
        assert_names(&fails(site), &["users.toml", &format!("mode {mode:04o}"), "chmod o-r", "users_file"]);
    }
    let site = written();
    site::give(&site.users(), 61_811);
    assert_names(&fails(site), &["users.toml", "61811", "chown"]);
    let site = written();
    fs::remove_file(site.users()).expect("remove");
    fs::create_dir(site.users()).expect("mkdir");
    assert_names(&fails(site), &["users.toml", "regular file"]);
}

#[test]
fn an_unreadable_file_is_named_to_an_ordinary_user() {
    if !root_or_skip("unreadable file") {
        return;
    }
    let mut site = Site::new();
    site.copy_programs();
    site.write();
    let config = site.config().display().to_string();
    let mut command = Command::new(site.programs.join("caissond"));
    std::os::unix::process::CommandExt::uid(&mut command, site::ORDINARY_UID);
    std::os::unix::process::CommandExt::gid(&mut command, site::ORDINARY_UID);
    command.arg("-f").arg(site.config());
    assert_names(&judge(run_to_end(site, command)), &[&config, "denied"]);
}

#[test]
fn an_unknown_setting_is_named_with_line_and_nearest_name() {
    if !root_or_skip("unknown setting") {
        return;
    }
    let mut site = Site::new();
    site.set("idle_timeout_sec = 5");
    site.write();
    let text = fs::read_to_string(site.config()).expect("read");
    let line = text.lines().position(|l| l.starts_with("idle_timeout_sec ")).expect("the line") + 1;
    let place = format!("{}:{line}:", site.config().display());
    assert_names(&fails(site), &[&place, "idle_timeout_sec", "idle_timeout_secs"]);
}

#[test]
fn a_value_of_the_wrong_type_or_range_is_named_with_what_was_expected() {
    if !root_or_skip("wrong values") {
        return;
    }
    for (line, expected) in [
        ("workers = \"two\"", "integer"),
        ("workers = 100000", "128"),
        ("active = 1", "true or false"),
        ("passive_ports = \"20-30\"", "1024"),
        ("sandbox = \"off\"", "best-effort"),
        ("umask = -1", "integer"),
    ] {
        let mut site = Site::new();
        if line.starts_with("passive_ports") {
            site.passive = (20, 30);
        } else {
            site.set(line);
        }
        site.write();
        let key = line.split(' ').next().expect("a key");
        assert_names(&fails(site), &["caisson.toml:", key, expected]);
    }
}

#[test]
fn a_file_that_is_no_toml_is_named_with_its_line() {
    if !root_or_skip("no TOML") {
        return;
    }
    let site = written();
    site::write_private(&site.config(), "workers = 1\nworkers = = 2\n");
    let place = format!("{}:2:", site.config().display());
    assert_names(&fails(site), &[&place]);
}

#[test]
fn one_wrong_account_is_named_and_nothing_is_loaded() {
    if !root_or_skip("wrong accounts") {
        return;
    }
    for (spoilt, words) in [
        (("uid = 61812", "uid = 0"), &["uid", "allow_root_accounts"][..]),
        (("uid = 61812", "uid = \"no-such-user\""), &["uid", "no-such-user"]),
        (("name = \"bob\"", "name = \"alice\""), &["alice", "twice"]),
        (("name = \"bob\"", "name = \"b/b\""), &["name"]),
        (
            ("m=19456,t=2,p=1$Y2Fpc3Nvbi1zYWx0LWJi", "m=8,t=1,p=1$Y2Fpc3Nvbi1zYWx0LWJi"),
            &["password", "m (memory in KiB)", "hash-password"],
        ),
        (("m=19456", "m=+19456"), &["password", "m (memory in KiB)", "hash-password"]),
        (("permissions", "permission"), &["permission", "permissions"]),
    ] {
        let site = written();
        let text = fs::read_to_string(site.users()).expect("read");
        // The second account is spoilt, so that a table loaded half would show.
        let second = text.rfind("[[user]]").expect("two accounts");
        let (first, second) = text.split_at(second);
        assert!(second.contains(spoilt.0), "{second}");
        site::write_private(&site.users(), &format!("{first}{}", second.replacen(spoilt.0, spoilt.1, 1)));
        let line = fails(site);
        assert_names(&line, &["users.toml:"]);
        assert_names(&line, words);
    }
}

#[test]
fn a_home_that_is_not_there_keeps_out_its_own_account_alone() {
    if !root_or_skip("missing home") {
        return;
    }
    let site = Site::new();
    let home = site.account("bob").home.clone();
    fs::remove_dir(&home).expect("rmdir");
    let daemon = Daemon::start(site);
    let mut client = daemon.connect();
    client.expect("USER bob", &[331]);
    client.expect("PASS battery staple", &[421, 530]);
    assert_names(&daemon.logged(&["bob", "home"]), &[&home.display().to_string()]);
    daemon.login("alice").in_step();
}

#[test]
fn a_kernel_without_landlock_stops_the_start_unless_the_admin_says_otherwise() {
    if !root_or_skip("without Landlock") {
        return;
    }
    let without = env!("CARGO_BIN_EXE_without-landlock");
    let site = written();
    let mut command = Command::new(without);
    command.arg(site.programs.join("caissond")).arg("-f").arg(site.config());
    let line = judge(run_to_end(site, command));
    assert_names(&line, &["Landlock", "sandbox", "best-effort"]);

    let mut site = Site::new();
    site.set("sandbox = \"best-effort\"");
    site.write();
    let mut command = Command::new(without);
    command.arg(site.programs.join("caissond")).arg("-f").arg(site.config());
    let daemon = Daemon::run(site, command);
    daemon.logged(&["Landlock"]);
    daemon.login("alice").in_step();
}

#[test]
fn missing_programs_are_named() {
    if !root_or_skip("missing programs") {
        return;
    }
    let mut site = Site::new();
    let empty = site.dir.join("empty");
    fs::create_dir(&empty).expect("mkdir");
    let line = format!("program_dir = \"{}\"", empty.display());
    site.set(&line);
    site.write();
    assert_names(&fails(site), &["program_dir", "caisson-"]);
}

#[test]
fn a_child_that_cannot_run_stops_the_start() {
    if !root_or_skip("broken program") {
        return;
    }
    let mut site = Site::new();
    e2e::programs::swap(&site.copy_programs(), "caisson-authd", "/bin/false");
    site.write();
    let mut command = Command::new(site.programs.join("caissond"));
    command.arg("-f").arg(site.config());
    let ended = run_to_end(site, command);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    assert!(ended.said.contains("authd"), "{}", ended.said);
}

#[test]
fn a_configuration_reader_that_dies_is_one_clear_line() {
    if !root_or_skip("broken caisson-config") {
        return;
    }
    let mut site = Site::new();
    e2e::programs::swap(&site.copy_programs(), "caisson-config", "/bin/false");
    site.write();
    assert_names(&fails(site), &["caisson-config did not finish", "exit status 1"]);
}

#[test]
fn checking_only_binds_nothing_and_judges_everything() {
    if !root_or_skip("-n") {
        return;
    }
    let mut site = Site::new();
    site.write();
    let _taken = TcpListener::bind(site.address).expect("bind");
    assert_eq!(checked(&site).status.code(), Some(0), "{:?}", checked(&site));
    site.set("workerz = 2");
    site.write();
    let ended = checked(&site);
    assert_eq!(ended.status.code(), Some(1));
    assert_names(&String::from_utf8_lossy(&ended.stderr), &["workerz", "workers", "caisson.toml:"]);
}

#[test]
fn what_is_valid_and_will_not_work_is_warned_of() {
    if !root_or_skip("warnings") {
        return;
    }
    let mut site = Site::new();
    let home = site.dir.join("not-made-yet");
    site.account_mut("alice").home = home.clone();
    site.set("max_sessions = 1000000");
    site.write();
    let ended = checked(&site);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).ends_with(": valid\n"), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let home = home.display().to_string();
    let missing = ["home of account", "alice", "does not exist", &home];
    let descriptors = ["max_sessions", "RLIMIT_NOFILE", "LimitNOFILE=", "ulimit -n"];
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_names(&said, &missing);
    assert_names(&said, &descriptors);
    let daemon = Daemon::start(site);
    for words in [&missing[..], &descriptors] {
        assert!(daemon.logged(words).contains("warning monitor: process "));
    }
    // Whose home is there is served.
    daemon.login("bob").in_step();
    assert!(!daemon.log().contains("\"bob\" does not exist"));
}

fn checked(site: &Site) -> Output {
    let mut command = Command::new(site.programs.join("caissond"));
    command.arg("-n").arg("-f").arg(site.config()).output().expect("run caissond -n")
}

#[test]
fn quick_start_names_what_is_wrong_with_its_arguments() {
    let site = Site::new();
    let run = |words: &[&str]| {
        let output = Command::new(site.programs.join("caissond")).args(words).output().expect("run caissond");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_names(&run(&["serve"]), &["directory"]);
    assert_names(&run(&["serve", "/nonexistent-directory"]), &["/nonexistent-directory"]);
    assert_names(&run(&["serve", "/tmp", "--ftp", "nowhere"]), &["nowhere"]);
    assert_names(&run(&["serve", "/tmp", "--passive", "9-1"]), &["--passive"]);
    assert_names(&run(&["--frobnicate"]), &["frobnicate"]);
}
