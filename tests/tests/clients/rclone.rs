//! rclone: copy both ways, and check, which reads every byte of both sides.

use std::{path::Path, process::Command};

use super::{
    small::Mover,
    stage::{Stage, finish},
};

pub struct Rclone;

/// The account is the remote `:ftp:`, set up by the environment; no configuration file.
fn command(stage: &Stage, verb: &str) -> Command {
    let mut obscure = Command::new("rclone");
    obscure.args(["obscure", stage.password()]);
    let password = String::from_utf8(finish(obscure)).expect("base64");
    let address = stage.daemon.address();
    let mut command = Command::new("rclone");
    command.env("HOME", &stage.work).env("RCLONE_CONFIG", "").env("RCLONE_FTP_USER", "alice");
    command.env("RCLONE_FTP_HOST", address.ip().to_string()).env("RCLONE_FTP_PORT", address.port().to_string());
    command.env("RCLONE_FTP_PASS", password.trim());
    command.args([verb, "--retries=1", "--low-level-retries=1", "--transfers=4", "--checkers=4"]);
    command
}

impl Mover for Rclone {
    fn name(&self) -> &'static str {
        "rclone"
    }

    fn upload(&self, stage: &Stage, from: &Path) {
        let mut copy = command(stage, "copy");
        copy.arg(from).arg(":ftp:/");
        finish(copy);
        let mut check = command(stage, "check");
        check.arg("--download").arg(from).arg(":ftp:/");
        finish(check);
    }

    fn download(&self, stage: &Stage, to: &Path) {
        let mut copy = command(stage, "copy");
        copy.arg(":ftp:/").arg(to);
        finish(copy);
        let mut check = command(stage, "check");
        check.arg("--download").arg(":ftp:/").arg(to);
        finish(check);
    }
}
