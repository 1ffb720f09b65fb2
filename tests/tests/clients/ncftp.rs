//! ncftpput and ncftpget, each with `-R`, and with a pattern.

use std::{ffi::OsString, fs, path::Path, process::Command};

use super::{
    small::Mover,
    stage::{Stage, finish},
};

pub struct Ncftp;

/// A program with the login in front; neither the user's settings nor history.
fn command(stage: &Stage, program: &str) -> Command {
    let login = stage.work.join("ncftp.login");
    let address = stage.daemon.address();
    fs::write(&login, format!("host {}\nuser alice\npass {}\n", address.ip(), stage.password())).expect("write");
    let mut command = Command::new(program);
    command.env("HOME", &stage.work).arg("-f").arg(login).arg("-P").arg(address.port().to_string());
    command.args(["-V", "-r", "1", "-t", "20"]);
    command
}

/// Downloads what a pattern matches.
pub fn mget(stage: &Stage, pattern: &str, to: &Path) {
    let mut command = command(stage, "ncftpget");
    command.arg(to).arg(pattern);
    finish(command);
}

/// The entries of a directory: ncftp takes names, no "everything in here".
fn entries(of: &Path) -> impl Iterator<Item = OsString> {
    fs::read_dir(of).expect("list").map(|entry| entry.expect("list").file_name())
}

impl Mover for Ncftp {
    fn name(&self) -> &'static str {
        "ncftp"
    }

    fn upload(&self, stage: &Stage, from: &Path) {
        let mut command = command(stage, "ncftpput");
        command.args(["-R", "/"]).args(entries(from).map(|name| from.join(name)));
        finish(command);
    }

    fn download(&self, stage: &Stage, to: &Path) {
        let mut command = command(stage, "ncftpget");
        command.arg("-R").arg(to).args(entries(&stage.home()).map(|name| Path::new("/").join(name)));
        finish(command);
    }
}
