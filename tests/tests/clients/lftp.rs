//! lftp: `mirror` both ways, with two connections.

use std::{path::Path, process::Command};

use super::stage::{Client, How, RATE, Reach, Stage, finish};

pub struct Lftp;

impl Lftp {
    /// lftp with its settings and some commands.
    ///
    /// Both character sets are the same, so that names travel byte for byte.
    fn command(stage: &Stage, commands: &str) -> Command {
        let tls = match stage.certificate() {
            Some(certificate) => format!(
                "set ftp:ssl-force yes; set ftp:ssl-protect-data yes; set ssl:verify-certificate yes; set ssl:ca-file {};",
                path(&certificate)
            ),
            None => "set ftp:ssl-allow no;".to_owned(),
        };
        let scheme = if stage.reach == Reach::Implicit { "ftps" } else { "ftp" };
        let script = format!(
            "set cmd:fail-exit yes; set net:max-retries 1; set net:timeout 15; {tls} \
             set ftp:use-utf8 no; set ftp:charset iso-8859-1; set file:charset iso-8859-1; \
             open -u alice,\"{}\" {scheme}://{}; {commands}",
            stage.password(),
            stage.address()
        );
        let mut command = Command::new("lftp");
        // Neither the user's settings nor history.
        command.env("HOME", &stage.work).env("LC_ALL", "C.UTF-8").arg("--norc").arg("-c").arg(script);
        command
    }
}

/// A word of lftp's command line.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

fn path(of: &Path) -> String {
    quoted(of.to_str().expect("UTF-8"))
}

impl Client for Lftp {
    fn name(&self) -> &'static str {
        "lftp"
    }

    fn upload(&self, stage: &Stage, from: &Path) {
        finish(Self::command(stage, &format!("mirror --reverse --parallel=2 {} /", path(from))));
    }

    fn download(&self, stage: &Stage, to: &Path) {
        finish(Self::command(stage, &format!("set ftp:list-options -a; mirror --parallel=2 / {}", path(to))));
    }

    fn list(&self, stage: &Stage, dir: &str) -> Vec<String> {
        let said = finish(Self::command(stage, &format!("cd {}; nlist", quoted(dir))));
        String::from_utf8_lossy(&said).lines().map(str::to_owned).collect()
    }

    fn rename(&self, stage: &Stage, from: &str, to: &str) {
        finish(Self::command(stage, &format!("mv {} {}", quoted(from), quoted(to))));
    }

    fn put(&self, stage: &Stage, from: &Path, to: &str, how: How) -> Command {
        let (settings, option) = how_to(how);
        Self::command(stage, &format!("{settings} put {option} {} -o {}", path(from), quoted(to)))
    }

    fn get(&self, stage: &Stage, from: &str, to: &Path, how: How) -> Command {
        let (settings, option) = how_to(how);
        Self::command(stage, &format!("{settings} get {option} {} -o {}", quoted(from), path(to)))
    }
}

fn how_to(how: How) -> (String, &'static str) {
    match how {
        How::Slowly => (format!("set net:limit-rate {RATE}; set xfer:clobber yes;"), ""),
        How::GoingOn => (String::new(), "-c"),
    }
}
