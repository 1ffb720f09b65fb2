//! Where the programs under test are, and copies of them where an ordinary user may execute them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// All programs of the daemon.
pub const PROGRAMS: [&str; 6] =
    ["caissond", "caisson-config", "caisson-authd", "caisson-worker", "caisson-broker", "caissonctl"];

/// The folder with the programs of the profile this test was built in: `target/debug`, say.
#[must_use]
pub fn of_this_profile() -> PathBuf {
    let own = std::env::current_exe().expect("/proc/self/exe");
    // target/PROFILE/deps/NAME-HASH
    let folder = own.parent().and_then(Path::parent).expect("a test lies in target/PROFILE/deps").to_path_buf();
    assert!(folder.join("caissond").exists(), "no caissond in {}: cargo build --workspace", folder.display());
    folder
}

/// The folder with the release build, if there is a whole one; otherwise [`of_this_profile`].
#[must_use]
pub fn release_if_there() -> PathBuf {
    let ours = of_this_profile();
    let release = ours.with_file_name("release");
    if PROGRAMS.iter().all(|name| release.join(name).exists()) { release } else { ours }
}

/// Copies the programs from `from` to `to`; an ordinary user may not reach the checkout.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("make the folder of the copies");
    for name in PROGRAMS {
        place(&from.join(name), &to.join(name));
    }
}

/// Puts a program at `to`: a hard link if possible, otherwise a copy.
pub fn place(from: &Path, to: &Path) {
    let _ = fs::remove_file(to);
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).unwrap_or_else(|cause| panic!("copy {} to {}: {cause}", from.display(), to.display()));
    }
}

/// Puts another program into the place of one of the copies.
pub fn swap(copies: &Path, name: &str, with: &str) {
    let place = copies.join(name);
    fs::remove_file(&place).expect("remove the copy");
    fs::copy(with, &place).unwrap_or_else(|cause| panic!("copy {with} to {}: {cause}", place.display()));
}
