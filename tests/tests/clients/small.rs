//! What the further clients have to do: upload a tree of small files and get every byte of it back.

use std::{
    fs,
    path::{Path, PathBuf},
};

use e2e::{Daemon, Site, root_or_skip, tree};

use super::stage::Stage;

/// Names a file can have; `#` stands for its number.
const NAMES: [&str; 11] = [
    "file-#.bin",
    "two words #",
    "quote \"#\".txt",
    "it's # o'clock",
    "\u{e9}t\u{e9}-#-\u{2603}",
    "[#] {copy}",
    "a  b   #",
    "#%+&;=,$!@",
    ".hidden-#",
    "-dash #",
    "st*r?#",
];
/// Directories of the tree.
const DIRECTORIES: [&str; 4] = ["plain", "with space", "gr\u{fc}n/\u{65e5}\u{672c}\u{8a9e}", "it's \"quoted\""];
/// Sizes in bytes, in turns.
const SIZES: [u64; 8] = [0, 1, 511, 4096, 16_384, 65_535, 65_536, 100_001];

/// A client program that moves whole trees.
pub trait Mover {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Uploads everything below `from` into the account's root.
    fn upload(&self, stage: &Stage, from: &Path);
    /// Downloads everything of the account into `to`.
    fn download(&self, stage: &Stage, to: &Path);
}

/// Makes the tree, has it moved there and back, and compares every byte.
pub fn there_and_back(mover: &dyn Mover, files: usize) {
    if !root_or_skip(mover.name()) {
        return;
    }
    let stage = Stage::set(Daemon::start(Site::roomy()));
    on_stage(&stage, files, |from| mover.upload(&stage, from), |to| mover.download(&stage, to));
}

/// Makes the tree and has it moved to the server and back.
pub fn on_stage(stage: &Stage, files: usize, upload: impl Fn(&Path), download: impl Fn(&Path)) {
    let (source, back) = (stage.work.join("source"), stage.work.join("back"));
    for number in 0..files {
        let file = source.join(path(number));
        fs::create_dir_all(file.parent().expect("below the top")).expect("mkdir");
        tree::write(&file, SIZES[number % SIZES.len()], number as u64);
    }
    // Longer than what is in flight.
    tree::write(&source.join("plain/long"), (8 << 20) + 1, 99);
    upload(&source);
    tree::assert_same(&source, &stage.home());
    stage.assert_owned();
    fs::create_dir(&back).expect("mkdir");
    download(&back);
    tree::assert_same(&source, &back);
}

/// Where a file is, relative to the top.
fn path(number: usize) -> PathBuf {
    let directory = DIRECTORIES[number / NAMES.len() % DIRECTORIES.len()];
    Path::new(directory).join(NAMES[number % NAMES.len()].replace('#', &number.to_string()))
}
