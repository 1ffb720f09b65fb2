//! basic-ftp, the client of Node programs, by a script that does what they do with it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use e2e::programs;

use super::{
    small::Mover,
    stage::{Stage, finish},
};

pub struct BasicFtp;

/// Where tests/setup puts packages of npm, if it could.
pub fn modules() -> Option<PathBuf> {
    let target = programs::of_this_profile().parent().map(|target| target.join("npm/node_modules"));
    target.filter(|modules| modules.join("basic-ftp").is_dir())
}

fn run(stage: &Stage, verb: &str, folder: &Path) {
    let address = stage.daemon.address();
    let mut command = Command::new("node");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/tree.cjs"));
    command.env("NODE_PATH", modules().expect("basic-ftp is installed"));
    command.arg(address.ip().to_string()).arg(address.port().to_string());
    command.arg("alice").arg(stage.password()).arg(verb).arg(folder);
    finish(command);
}

impl Mover for BasicFtp {
    fn name(&self) -> &'static str {
        "basic-ftp"
    }

    fn upload(&self, stage: &Stage, from: &Path) {
        run(stage, "upload", from);
    }

    fn download(&self, stage: &Stage, to: &Path) {
        run(stage, "download", to);
    }
}
