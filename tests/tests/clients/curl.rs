//! curl: one run a task, all files by one configuration file, eight connections.
//!
//! curl 7.88 sleeps a second in front of a data connection when 229 is there before it looks for it, which a server on
//! the same machine manages now and then (Pure-FTPd too); with several connections those seconds pass side by side.

use std::{fs, os::unix::ffi::OsStrExt, path::Path, process::Command};

use e2e::{Daemon, Site, root_or_skip, tree};

use super::stage::{Client, How, RATE, Reach, Stage, finish, percent};

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

    /// A command for many files: pairs of an option with a local path, and a URL.
    fn batch(&self, stage: &Stage, option: &str, top: &Path, files: &[&Path]) -> Command {
        let mut text = Vec::new();
        for file in files {
            text.extend_from_slice(format!("{option} = ").as_bytes());
            text.extend_from_slice(&quoted(top.join(file).as_os_str().as_bytes()));
            text.extend_from_slice(
                format!("\nurl = \"{}\"\n", Self::url(stage, file.as_os_str().as_bytes())).as_bytes(),
            );
        }
        let list = stage.work.join("curl.config");
        fs::write(&list, text).expect("write");
        let mut command = self.command(stage);
        command.args(["--parallel", "--parallel-max", "8"]).arg("--config").arg(list);
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
        let mut command = self.batch(stage, "upload-file", from, &files);
        command.arg("--ftp-create-dirs");
        finish(command);
    }

    fn download(&self, stage: &Stage, to: &Path) {
        let files = tree::files(&stage.home());
        let files: Vec<&Path> = files.keys().map(AsRef::as_ref).collect();
        let mut command = self.batch(stage, "output", to, &files);
        command.arg("--create-dirs");
        finish(command);
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
        site.certify().set(&format!("tls_required = \"{policy}\""));
        let stage = Stage::set(Daemon::start(site));
        let content = tree::content(300_000, 6);
        let (from, to) = (stage.work.join("from"), stage.work.join("to"));
        fs::write(&from, &content).expect("write");
        let command = || {
            let mut command = Curl(&["--ftp-ssl-control"]).command(&stage);
            command.arg("--cacert").arg(stage.daemon.site.certificate());
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
