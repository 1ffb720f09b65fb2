//! curl: one run a task, all files by one configuration file, eight connections.
//!
//! Under TLS these are eight runs: curl offers on a data connection what it has last got from any connection to that host, so of
//! several at once it takes one's ticket to another's transfer.
//!
//! curl 7.88 sleeps a second in front of a data connection when 229 is there before it looks for it, which a server on
//! the same machine manages now and then (Pure-FTPd too); with several connections those seconds pass side by side.

use std::{fs, os::unix::ffi::OsStrExt, path::Path, process::Command, thread};

use e2e::{Site, root_or_skip, tree};

use super::stage::{Client, How, RATE, Reach, Stage, finish, percent};

/// Connections at once.
const CONNECTIONS: usize = 8;

/// With further options.
pub struct Curl(pub &'static [&'static str]);

impl Curl {
    fn command(&self, stage: &Stage) -> Command {
        let mut command = Command::new("curl");
        command.args(["--disable", "--silent", "--show-error", "--fail-early", "--globoff"]);
        command.arg("--user").arg(format!("alice:{}", stage.password())).args(self.0);
        if let Some(certificate) = stage.certificate() {
            command.arg("--ssl-reqd").arg("--cacert").arg(certificate);
        }
        command
    }

    fn url(stage: &Stage, path: &[u8]) -> String {
        let scheme = if stage.reach == Reach::Implicit { "ftps" } else { "ftp" };
        format!("{scheme}://{}/{}", stage.address(), percent(path))
    }

    /// Moves many files, with one more option.
    fn batch(&self, stage: &Stage, (option, more): (&str, &str), top: &Path, files: &[&Path]) {
        let runs = if stage.reach == Reach::Clear { 1 } else { CONNECTIONS };
        thread::scope(|threads| {
            for (number, part) in files.chunks(files.len().div_ceil(runs)).enumerate() {
                let mut command = self.of_list(stage, option, top, part, number);
                command.arg(more);
                if runs == 1 {
                    command.args(["--parallel", "--parallel-max"]).arg(CONNECTIONS.to_string());
                }
                threads.spawn(|| finish(command));
            }
        });
    }

    /// A command for a list of files: pairs of an option with a local path, and a URL.
    fn of_list(&self, stage: &Stage, option: &str, top: &Path, files: &[&Path], number: usize) -> Command {
        let mut text = Vec::new();
        for file in files {
            text.extend_from_slice(format!("{option} = ").as_bytes());
            text.extend_from_slice(&quoted(top.join(file).as_os_str().as_bytes()));
            text.extend_from_slice(
                format!("\nurl = \"{}\"\n", Self::url(stage, file.as_os_str().as_bytes())).as_bytes(),
            );
        }
        let list = stage.work.join(format!("curl.config-{number}"));
        fs::write(&list, text).expect("write");
        let mut command = self.command(stage);
        command.arg("--config").arg(list);
        command
    }
}

/// A string of curl's configuration file.
fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for &byte in bytes {
        if byte == b'"' || byte == b'\\' {
            text.push(b'\\');
        }
        text.push(byte);
    }
    text.push(b'"');
    text
}

impl Client for Curl {
    fn name(&self) -> &'static str {
        "curl"
    }

    fn upload(&self, stage: &Stage, from: &Path) {
        let files = tree::files(from);
        let files: Vec<&Path> = files.keys().map(AsRef::as_ref).collect();
        self.batch(stage, ("upload-file", "--ftp-create-dirs"), from, &files);
    }

    fn download(&self, stage: &Stage, to: &Path) {
        let files = tree::files(&stage.home());
        let files: Vec<&Path> = files.keys().map(AsRef::as_ref).collect();
        self.batch(stage, ("output", "--create-dirs"), to, &files);
    }

    fn list(&self, stage: &Stage, dir: &str) -> Vec<String> {
        let mut command = self.command(stage);
        command.arg("--list-only").arg(Self::url(stage, format!("{dir}/").as_bytes()));
        String::from_utf8_lossy(&finish(command)).lines().map(str::to_owned).collect()
    }

    fn rename(&self, stage: &Stage, from: &str, to: &str) {
        let mut command = self.command(stage);
        command.arg("--quote").arg(format!("RNFR {from}")).arg("--quote").arg(format!("RNTO {to}"));
        command.arg("--list-only").arg(Self::url(stage, b""));
        finish(command);
    }

    fn put(&self, stage: &Stage, from: &Path, to: &str, how: How) -> Command {
        let mut command = self.command(stage);
        how_to(&mut command, how);
        command.arg("--upload-file").arg(from).arg(Self::url(stage, to.as_bytes()));
        command
    }

    fn get(&self, stage: &Stage, from: &str, to: &Path, how: How) -> Command {
        let mut command = self.command(stage);
        how_to(&mut command, how);
        command.arg("--output").arg(to).arg(Self::url(stage, from.as_bytes()));
        command
    }
}

fn how_to(command: &mut Command, how: How) {
    match how {
        How::Slowly => command.arg("--limit-rate").arg(RATE.to_string()),
        How::GoingOn => command.args(["--continue-at", "-"]),
    };
}

/// `--ftp-ssl-control`: data connections stay in clear, which `tls_required` says no to or not.
pub fn control_alone() {
    if !root_or_skip("curl --ftp-ssl-control") {
        return;
    }
    for (policy, allowed) in [("login", true), ("data", false)] {
        let mut site = Site::new();
        site.set(&format!("tls_required = \"{policy}\""));
        let stage = Stage::under_tls(site, Reach::Explicit);
        let content = tree::content(300_000, 6);
        let (from, to) = (stage.work.join("from"), stage.work.join("to"));
        fs::write(&from, &content).expect("write");
        let command = || {
            let mut command = Command::new("curl");
            command.args(["--disable", "--silent", "--show-error", "--ftp-ssl-control", "--cacert"]);
            command.arg(stage.daemon.site.certificate()).arg("--user").arg(format!("alice:{}", stage.password()));
            command
        };
        let mut put = command();
        put.arg("--upload-file").arg(&from).arg(Curl::url(&stage, b"f"));
        if !allowed {
            let output = put.output().expect("curl");
            assert!(!output.status.success() && !stage.home().join("f").exists());
            continue;
        }
        finish(put);
        assert!(fs::read(stage.home().join("f")).expect("read") == content);
        let mut get = command();
        get.arg("--output").arg(&to).arg(Curl::url(&stage, b"f"));
        finish(get);
        assert!(fs::read(&to).expect("read") == content);
    }
}

/// `--parallel` takes one connection's ticket to another's data connection: that is refused unless nothing is resumed.
pub fn in_parallel() {
    if !root_or_skip("curl --parallel under TLS") {
        return;
    }
    let mut site = Site::new();
    site.set("data_resumption = \"off\"");
    let stage = Stage::under_tls(site, Reach::Explicit);
    let (from, to) = (stage.work.join("from"), stage.work.join("to"));
    fs::create_dir(&from).expect("mkdir");
    (0..40).for_each(|number| tree::write(&from.join(number.to_string()), 50_000 + number, number));
    let files = tree::files(&from);
    let files: Vec<&Path> = files.keys().map(AsRef::as_ref).collect();
    for (option, top) in [("upload-file", &from), ("output", &to)] {
        let mut command = Curl(&[]).of_list(&stage, option, top, &files, 0);
        command.args(["--create-dirs", "--parallel", "--parallel-max"]).arg(CONNECTIONS.to_string());
        finish(command);
    }
    tree::assert_same(&from, &stage.home());
    tree::assert_same(&from, &to);
}

/// Of downloads, it takes a new ticket from each.
pub fn downloads_in_a_row() {
    if !root_or_skip("curl, downloads in a row") {
        return;
    }
    let stage = Stage::secured(Site::new(), Reach::Explicit);
    for number in 0..20 {
        stage.daemon.put("alice", &number.to_string(), &tree::content(20_000 + number, number as u64));
    }
    let files = tree::files(&stage.home());
    let files: Vec<&Path> = files.keys().map(AsRef::as_ref).collect();
    let to = stage.work.join("to");
    let mut command = Curl(&["--tlsv1.3"]).of_list(&stage, "output", &to, &files, 0);
    command.arg("--create-dirs");
    finish(command);
    tree::assert_same(&stage.home(), &to);
}

/// `--no-sessionid`: it resumes nothing, and says why that failed where it has to.
pub fn without_sessions() {
    if !root_or_skip("curl that resumes nothing") {
        return;
    }
    let stage = Stage::secured(Site::new(), Reach::Explicit);
    let kept = stage.daemon.put("alice", "kept", b"as it was");
    let to = stage.work.join("to");
    for version in ["1.2", "1.3"] {
        let options = ["--no-sessionid", "--verbose", "--tls-max", version];
        let command = || {
            let mut command = Command::new("curl");
            command.args(["--disable", "--silent", "--ssl-reqd", "--cacert"]).arg(stage.daemon.site.certificate());
            command.arg("--user").arg(format!("alice:{}", stage.password())).args(options);
            command
        };
        let mut put = command();
        put.arg("--upload-file").arg(&kept).arg(Curl::url(&stage, b"kept"));
        let mut get = command();
        get.arg("--output").arg(&to).arg(Curl::url(&stage, b"kept"));
        for mut refused in [put, get] {
            let output = refused.output().expect("curl");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("handshake failure"), "{version}: {said}");
            assert_eq!(fs::read(&kept).expect("read"), b"as it was");
            assert!(!to.exists());
        }
    }
}
