//! tnftp, the BSDs' ftp(1): a script of its commands.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs::{self, File},
    path::Path,
    process::Command,
};

use e2e::tree;

use super::{small::Mover, stage::Stage};

pub struct Tnftp;

/// Runs commands in one session. Whether each was done the trees tell: a script goes on after an error.
fn run(stage: &Stage, commands: &str) {
    let address = stage.daemon.address();
    let script = stage.work.join("tnftp.script");
    let login = format!("open {} {}\nuser alice \"{}\"\nbinary\n", address.ip(), address.port(), stage.password());
    fs::write(&script, login + commands + "quit\n").expect("write");
    let mut command = Command::new("tnftp");
    command.env("HOME", &stage.work).args(["-n", "-i", "-p", "-v"]).stdin(File::open(script).expect("open"));
    let output = command.output().expect("start tnftp");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Downloads what a pattern matches.
pub fn mget(stage: &Stage, pattern: &str, to: &Path) {
    run(stage, &format!("lcd {}\nmget {pattern}\n", quoted(to)));
}

/// A word of its command line: between quotation marks, a backslash would not save another.
fn quoted(path: &Path) -> String {
    let special = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !"/-._".contains(c);
    let escaped = |c: char| special(c).then_some('\\').into_iter().chain([c]);
    path.to_str().expect("UTF-8").chars().flat_map(escaped).collect()
}

impl Mover for Tnftp {
    fn name(&self) -> &'static str {
        "tnftp"
    }

    fn upload(&self, stage: &Stage, from: &Path) {
        let files = tree::files(from);
        let mut commands = String::new();
        // Above comes before below.
        let folders: BTreeSet<&Path> = files.keys().flat_map(|file| file.ancestors().skip(1)).collect();
        for folder in folders.iter().filter(|folder| !folder.as_os_str().is_empty()) {
            let _ = writeln!(commands, "mkdir {}", quoted(folder));
        }
        for file in files.keys() {
            let _ = writeln!(commands, "put {} {}", quoted(&from.join(file)), quoted(file));
        }
        run(stage, &commands);
    }

    fn download(&self, stage: &Stage, to: &Path) {
        let mut commands = String::new();
        for file in tree::files(&stage.home()).keys() {
            fs::create_dir_all(to.join(file).parent().expect("below the top")).expect("mkdir");
            let _ = writeln!(commands, "get {} {}", quoted(file), quoted(&to.join(file)));
        }
        run(stage, &commands);
    }
}
