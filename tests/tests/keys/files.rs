//! The files of `[[certificate]]` with the real daemon: at its start, at a reload, and when they change.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use e2e::{
    Daemon, Site,
    daemon::{Ended, run_to_end},
    root_or_skip, site,
    wait::within,
};
use nix::sys::signal::Signal;

use super::pair;

/// A site with a certificate, written; its files.
fn with_certificate() -> (Site, [PathBuf; 2]) {
    let mut site = Site::new();
    let files = ["certificate.pem", "key.pem"].map(|name| site.dir.join(name));
    put(&files, &pair(&rcgen::PKCS_ED25519));
    let [certificate, key] = files.each_ref().map(|file| file.display());
    site.section("certificate", &format!("certificate = \"{certificate}\"\nkey = \"{key}\""));
    site.write();
    (site, files)
}

/// Replaces the files as an ACME client does: each by another.
fn put(files: &[PathBuf; 2], pair: &[String; 2]) {
    for (file, text) in files.iter().zip(pair) {
        let new = file.with_extension("new");
        site::write_private(&new, text);
        fs::rename(&new, file).expect("rename");
    }
}

/// The one line of a daemon that cannot start, with status 1.
fn fails(site: Site) -> String {
    let mut command = Command::new(site.programs.join("caissond"));
    command.arg("-f").arg(site.config());
    one_line(run_to_end(site, command))
}

fn one_line(ended: Ended) -> String {
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    let lines: Vec<_> = ended.said.lines().filter(|line| !line.trim().is_empty()).collect();
    assert_eq!(lines.len(), 1, "one line:\n{}", ended.said);
    lines[0].to_owned()
}

fn mode(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("chmod");
}

#[test]
fn a_start_with_files_that_cannot_be_used_ends_with_a_line_that_names_file_and_remedy() {
    type Spoil = fn(&[PathBuf; 2]);
    let spoilt: &[(Spoil, usize, &str)] = &[
        (|files| fs::remove_file(&files[1]).expect("unlink"), 1, "No such file or directory"),
        (|files| fs::remove_file(&files[0]).expect("unlink"), 0, "No such file or directory"),
        (
            |files| {
                fs::remove_file(&files[1]).expect("unlink");
                fs::create_dir(&files[1]).expect("mkdir");
            },
            1,
            "not a regular file",
        ),
        (|files| site::give(&files[1], site::ORDINARY_UID), 1, "chown it to root"),
        (|files| mode(&files[1], 0o604), 1, "mode 0604 lets everybody read a private key; chmod o-r"),
        (|files| mode(&files[1], 0o660), 1, "mode 0660 lets others write it; chmod go-w"),
        (|files| site::write_private(&files[0], "nothing"), 0, "holds no certificate in PEM"),
        (|files| site::write_private(&files[1], "nothing"), 1, "holds no private key in PEM"),
        (
            |files| site::write_private(&files[1], &pair(&rcgen::PKCS_ED25519)[1]),
            1,
            "does not belong to the certificate of its section; name the pair that was made together",
        ),
    ];
    for (spoil, which, why) in spoilt {
        let (site, files) = with_certificate();
        spoil(&files);
        let line = fails(site);
        let file = files[*which].display().to_string();
        assert!(line.contains(&file) && line.contains(why), "{line}");
        assert!(line.contains("[[certificate]]"), "the setting: {line}");
    }
}

#[test]
fn a_key_that_an_ordinary_user_may_not_read_is_named_to_that_user() {
    if !root_or_skip("an unreadable key") {
        return;
    }
    let (mut site, files) = with_certificate();
    site.copy_programs();
    site.accounts.truncate(1);
    site.account_mut("alice").uid = site::ORDINARY_UID;
    site.write();
    for file in [site.dir.clone(), site.config(), site.users(), files[0].clone()] {
        site::give(&file, site::ORDINARY_UID);
    }
    let mut command = Command::new(site.programs.join("caissond"));
    command.uid(site::ORDINARY_UID).gid(site::ORDINARY_UID).arg("-f").arg(site.config());
    let line = one_line(run_to_end(site, command));
    let key = files[1].display().to_string();
    assert!(line.contains(&key) && line.contains("denied") && line.contains("[[certificate]]"), "{line}");
}

#[test]
fn tls_without_a_certificate_is_refused_with_the_command_that_makes_one() {
    let mut site = Site::new();
    site.listen("tls = \"implicit\"");
    site.write();
    let line = fails(site);
    assert!(line.contains("listen.tls: needs a section [[certificate]]; caissonctl make-certificate"), "{line}");
}

#[test]
fn a_reload_takes_a_new_pair_over_and_refuses_a_broken_one_whole() {
    if !root_or_skip("certificates at a reload") {
        return;
    }
    let (site, files) = with_certificate();
    let mut daemon = Daemon::start(site);
    let taken = |daemon: &Daemon| daemon.log().matches("certificates taken over: keys=1").count();
    assert_eq!(taken(&daemon), 1);
    let ctl = |daemon: &Daemon| {
        let socket = daemon.site.control_socket();
        let program = daemon.site.programs.join("caissonctl");
        let output = Command::new(program).arg("-s").arg(socket).arg("reload").output().expect("caissonctl");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };

    // A broken pair, and a new banner: neither is taken over.
    daemon.site.set("banner = \"changed\"");
    daemon.site.write();
    let good = pair(&rcgen::PKCS_RSA_SHA256);
    put(&files, &[good[0].clone(), pair(&rcgen::PKCS_ED25519)[1].clone()]);
    let (done, said) = ctl(&daemon);
    let key = files[1].display().to_string();
    assert!(!done && said.contains(&key) && said.contains("does not belong to the certificate"), "{said}");
    daemon.logged(&["reload refused, nothing changed", &key]);
    assert!(!daemon.connect_greeting().contains("changed") && taken(&daemon) == 1);

    // A key that is not there.
    fs::remove_file(&files[1]).expect("unlink");
    let (done, said) = ctl(&daemon);
    assert!(!done && said.contains(&key) && said.contains("No such file"), "{said}");

    // The right one, by the signal.
    put(&files, &good);
    let mut client = daemon.login("alice");
    daemon.signal(Signal::SIGHUP);
    daemon.logged(&["monitor: process reloaded"]);
    assert!(daemon.connect_greeting().contains("changed") && taken(&daemon) == 2);
    client.expect("NOOP", &[200]);

    // What has not changed is not taken over again.
    assert!(ctl(&daemon).0 && taken(&daemon) == 2);
}

#[test]
fn a_new_authd_has_the_keys_again() {
    if !root_or_skip("authd dies") {
        return;
    }
    let (site, _) = with_certificate();
    let daemon = Daemon::start(site);
    daemon.authd().signal(Signal::SIGKILL);
    let twice = || (daemon.log().matches("certificates taken over: keys=1").count() == 2).then_some(());
    assert!(within(Duration::from_secs(10), twice).is_some(), "{}", daemon.log());
    daemon.login("alice").expect("NOOP", &[200]);
}

#[test]
fn files_that_change_are_noticed_within_a_minute() {
    if !root_or_skip("certificates change") {
        return;
    }
    let (site, files) = with_certificate();
    let daemon = Daemon::start(site);
    put(&files, &pair(&rcgen::PKCS_ED25519));
    let taken = || (daemon.log().matches("certificates taken over: keys=1").count() == 2).then_some(());
    assert!(within(Duration::from_secs(75), taken).is_some(), "{}", daemon.log());
}
