//! Python's ftplib, by a script that does what programs do with it.

use std::{path::Path, process::Command};

use super::stage::{Client, How, RATE, Stage, finish};

pub struct Ftplib;

impl Ftplib {
    fn command(stage: &Stage, words: &[&dyn AsRef<std::ffi::OsStr>]) -> Command {
        let mut command = Command::new("python3");
        command.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/tree.py"));
        let address = stage.daemon.address();
        command.arg(address.ip().to_string()).arg(address.port().to_string());
        command.arg("alice").arg(stage.password());
        command.args(words.iter().map(|w| w.as_ref()));
        if let Some(certificate) = stage.certificate() {
            command.env("FTPS_CERTIFICATE", certificate);
        }
        command
    }
}

impl Client for Ftplib {
    fn name(&self) -> &'static str {
        "ftplib"
    }

    fn upload(&self, stage: &Stage, from: &Path) {
        finish(Self::command(stage, &[&"upload", &from]));
    }

    fn download(&self, stage: &Stage, to: &Path) {
        finish(Self::command(stage, &[&"download", &to]));
    }

    fn list(&self, stage: &Stage, dir: &str) -> Vec<String> {
        let said = finish(Self::command(stage, &[&"list", &dir]));
        String::from_utf8_lossy(&said).lines().map(str::to_owned).collect()
    }

    fn rename(&self, stage: &Stage, from: &str, to: &str) {
        finish(Self::command(stage, &[&"rename", &from, &to]));
    }

    fn put(&self, stage: &Stage, from: &Path, to: &str, how: How) -> Command {
        Self::command(stage, &[&"put", &from, &to, &rate(how)])
    }

    fn get(&self, stage: &Stage, from: &str, to: &Path, how: How) -> Command {
        Self::command(stage, &[&"get", &from, &to, &rate(how)])
    }
}

/// The script's last word: bytes per second, or 0 to go on at full speed.
fn rate(how: How) -> String {
    match how {
        How::Slowly => RATE.to_string(),
        How::GoingOn => "0".to_owned(),
    }
}
