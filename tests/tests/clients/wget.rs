//! wget: downloads only, by recursion.

use std::{fs, os::unix::ffi::OsStrExt, path::Path, process::Command};

use e2e::tree;

use super::stage::{Client, How, RATE, Stage, finish, percent};

pub struct Wget;

impl Wget {
    fn command(stage: &Stage) -> Command {
        let mut command = Command::new("wget");
        command.args(["--no-config", "--no-verbose", "--tries=1", "--timeout=20", "--no-glob", "--no-iri"]);
        command.arg("--ftp-user=alice").arg(format!("--ftp-password={}", stage.password()));
        command.env("LC_ALL", "C").current_dir(&stage.work);
        command
    }
}

impl Client for Wget {
    fn name(&self) -> &'static str {
        "wget"
    }

    fn writes(&self) -> bool {
        false
    }

    fn upload(&self, _: &Stage, _: &Path) {
        unreachable!("wget does not upload");
    }

    fn download(&self, stage: &Stage, to: &Path) {
        let mut command = Self::command(stage);
        command.args(["--recursive", "--level=inf", "--no-host-directories", "--restrict-file-names=unix,nocontrol"]);
        command.arg("--directory-prefix").arg(to).arg(format!("ftp://{}/", stage.address()));
        finish(command);
        // wget takes leading spaces of a listing for padding; those files it gets by their URLs.
        let wanted = tree::files(&stage.home());
        let list = stage.work.join("wget.urls");
        let urls = wanted.keys().filter(|p| !to.join(p).exists()).map(|p| p.as_os_str().as_bytes());
        let urls: Vec<String> = urls.map(|p| format!("ftp://{}/{}\n", stage.address(), percent(p))).collect();
        assert_eq!(urls.len(), 10, "names with a leading space");
        fs::write(&list, urls.concat()).expect("write");
        let mut command = Self::command(stage);
        command.args(["--force-directories", "--no-host-directories", "--restrict-file-names=unix,nocontrol"]);
        command.arg("--directory-prefix").arg(to).arg("--input-file").arg(list);
        finish(command);
    }

    fn list(&self, _: &Stage, _: &str) -> Vec<String> {
        unreachable!("wget lists for itself");
    }

    fn rename(&self, _: &Stage, _: &str, _: &str) {
        unreachable!("wget does not rename");
    }

    fn put(&self, _: &Stage, _: &Path, _: &str, _: How) -> Command {
        unreachable!("wget does not upload");
    }

    fn get(&self, stage: &Stage, from: &str, to: &Path, how: How) -> Command {
        let mut command = Self::command(stage);
        match how {
            // --output-document would not go with --continue.
            How::Slowly => command.arg(format!("--limit-rate={RATE}")),
            How::GoingOn => command.arg("--continue"),
        };
        command.arg("--directory-prefix").arg(to.parent().expect("a folder"));
        command.arg(format!("ftp://{}/{}", stage.address(), percent(from.as_bytes())));
        command
    }
}
