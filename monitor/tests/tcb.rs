//! The trusted base is small, and stays so: how much of our code is in root's address space, and which crates are linked into it.
//!
//! `cargo tree` says which crates of ours caissond links, and all of their `src` is counted: policies, and what root never enters.
//! A line of code is one that is not blank, comment or test.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Most lines of code in monitor/src. (The aim is 1,500.)
const MONITOR: usize = 1_700;
/// Fewer lines of code of ours than this are in root's address space.
const ROOT: usize = 3_000;
/// Most lines of a file of monitor/src, tests and comments included.
const FILE: usize = 300;
/// Most lines of a function of monitor/src.
const FUNCTION: usize = 50;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Every source file below a folder, by its path.
fn sources(folder: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let name = entry.strip_prefix(root()).unwrap().display().to_string();
                found.insert(name, fs::read_to_string(&entry).unwrap());
            }
        }
    }
    found
}

/// The lines before the tests.
fn without_tests(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| line.trim() != "#[cfg(test)]")
}

/// Lines that are code.
fn code(text: &str) -> impl Iterator<Item = &str> {
    without_tests(text).filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
}

#[test]
fn the_code_that_runs_as_root_stays_small() {
    let ours = tree().ours;
    assert_eq!(ours.keys().collect::<Vec<_>>(), ["ipc", "monitor", "sandbox"]);
    let count = |folder: &String| sources(folder).values().map(|text| code(text).count()).sum::<usize>();
    let counts: BTreeMap<_, _> = ours.iter().map(|(name, folder)| (name.as_str(), count(folder))).collect();
    let root: usize = counts.values().sum();
    eprintln!("lines of code in root's address space: {root}, of them {counts:?}");
    assert!(counts["monitor"] <= MONITOR, "monitor has {} lines of code, {MONITOR} are allowed", counts["monitor"]);
    assert!(root < ROOT, "root has {root} lines of code of ours, fewer than {ROOT} are allowed");
}

#[test]
fn no_file_and_no_function_of_the_root_process_is_long() {
    for (name, text) in sources("monitor/src") {
        assert!(text.lines().count() <= FILE, "{name} is longer than {FILE} lines");
        let mut begun: Option<(usize, String, usize)> = None;
        for (number, line) in text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            if line.trim_start().contains("fn ") && line.ends_with('{') && begun.is_none() {
                begun = Some((indent, line.trim().to_owned(), number));
            } else if let Some((at, head, first)) = begun.take_if(|(at, ..)| *at == indent && line.trim() == "}") {
                let lines = number - first + 1;
                assert!(lines <= FUNCTION, "{name}: {head} has {lines} lines (indent {at})");
            }
        }
    }
}

/// What `cargo tree` says of caissond.
#[derive(Default)]
struct Tree {
    /// Crates linked, itself left out.
    linked: BTreeSet<String>,
    /// Those that run at build time as or for proc-macros.
    built: BTreeSet<String>,
    /// Crates of ours that are linked, itself among them, each with its folder of sources.
    ours: BTreeMap<String, String>,
}

fn tree() -> Tree {
    let words = "tree --offline -e normal --no-dedupe --prefix depth -p monitor --format".split(' ');
    let tree = Command::new(env!("CARGO")).args(words).arg(" {p}").current_dir(root()).output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let mut found = Tree::default();
    let mut below = usize::MAX;
    for line in String::from_utf8(tree.stdout).unwrap().lines().filter(|line| !line.is_empty()) {
        let (depth, package) = line.split_once(' ').unwrap();
        let depth: usize = depth.parse().unwrap();
        let name = package.split(' ').next().unwrap().to_owned();
        if depth <= below {
            below = if package.contains("(proc-macro)") { depth } else { usize::MAX };
        }
        if below != usize::MAX {
            found.built.insert(name);
            continue;
        }
        // A crate of this repository stands with its folder.
        if let Some((_, folder)) = package.split_once("(/") {
            let folder = format!("/{}/src", folder.trim_end_matches(')'));
            found.ours.insert(name.clone(), folder);
        }
        if depth > 0 {
            found.linked.insert(name);
        }
    }
    found
}

#[test]
fn root_links_the_crates_it_may_and_no_other() {
    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tcb.allow")).unwrap();
    let mut allowed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut section = "";
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let (name, reason) = line.split_once(' ').unwrap_or((line, ""));
        assert!(!reason.trim().is_empty(), "{name} has no reason");
        assert!(allowed.entry(section).or_default().insert(name.to_owned()), "{name} stands twice");
    }
    let tree = tree();
    assert_eq!(tree.linked, allowed["[linked]"]);
    assert_eq!(tree.built, allowed["[proc-macros]"]);
}
