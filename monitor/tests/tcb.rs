//! The trusted base is small, and stays so: how much of our code runs as root, and which crates are linked into it.
//!
//! A line of code is one that is not blank, comment or test. Counted are monitor/src, and of ipc and sandbox all but
//! [`NOT_IN_ROOT`], modules root does not use, and the lists of system calls in sandbox/src/policy, which are data
//! (sandbox/tests/rows.rs holds them).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Most lines of code in monitor/src. (The aim is 1,500.)
const MONITOR: usize = 1_700;
/// Most lines of code of ours in root's address space.
const ROOT: usize = 3_000;
/// Most lines of a file of monitor/src, tests and comments included.
const FILE: usize = 300;
/// Most lines of a function of monitor/src.
const FUNCTION: usize = 50;

/// Each with a reason, and the words by which it would be used in root's share of the code.
const NOT_IN_ROOT: &[(&str, &str, &[&str])] = &[
    ("ipc/src/link/places.rs", "root hands it on packed", &["places::Places", "Places::"]),
    (
        "ipc/src/link/settings.rs",
        "root hands them on packed",
        &["FtpSettings", "BrokerSettings", "settings::unpack", "settings::pack"],
    ),
    ("ipc/src/link/user_record.rs", "root hands the table on unread", &["UserRecord"]),
    ("ipc/src/link/worker_authd.rs", "root has no end of it", &["worker_authd::"]),
    ("ipc/src/link/worker_broker.rs", "root has no end of it", &["worker_broker::"]),
    ("ipc/src/types/net.rs", "root never compares a client's address or host", &["Network::", "HostName::"]),
    ("ipc/src/types/path.rs", "root never sees a client's path", &["VirtPath::", "VirtPath)", "VirtPath,"]),
    ("ipc/src/types/permission.rs", "root hands sets on and looks into none", &["Permission::Read", ".has(", ".with("]),
    ("ipc/src/types/secret.rs", "root never sees a password", &["Secret::", "Secret)", "Secret,"]),
    ("sandbox/src/attempts.rs", "for tests, behind a feature root does not have", &["attempts("]),
    (
        "sandbox/src/child.rs",
        "root confines itself by confine_monitor",
        &["Confinement", "sandbox::confine(", "child::confine"],
    ),
    ("sandbox/src/descriptors.rs", "steps of children", &["descriptors::"]),
    ("sandbox/src/ids.rs", "root stays who it is", &["ids::take_on", "ids::verify"]),
    ("sandbox/src/landlock.rs", "root has no domain", &["landlock::restrict"]),
    ("sandbox/src/link.rs", "root has no parent", &["take_link("]),
    ("sandbox/src/trim.rs", "brokers weigh less by it", &["give_back_pages"]),
    ("sandbox/src/unsent.rs", "for data connections", &["unsent("]),
    ("sandbox/src/mounts.rs", "root stays in the machine's namespaces", &["mounts::"]),
];

/// Tables and nothing else: every file of this folder but `mod.rs`, which holds the vocabulary.
const TABLES: &str = "sandbox/src/policy/";
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Every source file below a folder, by its path from the root of the repository.
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

/// The files of a folder that root uses, but for tables that are data.
fn in_root(folder: &str) -> BTreeMap<String, String> {
    let mut files = sources(folder);
    let table = |name: &str| name.starts_with(TABLES) && !name.ends_with("/mod.rs");
    files.retain(|name, _| !table(name) && !NOT_IN_ROOT.iter().any(|(file, ..)| file == name));
    files
}

#[test]
fn the_code_that_runs_as_root_stays_small() {
    let count = |folder| in_root(folder).values().map(|text| code(text).count()).sum::<usize>();
    let (monitor, ipc, sandbox) = (count("monitor/src"), count("ipc/src"), count("sandbox/src"));
    let root = monitor + ipc + sandbox;
    eprintln!("lines of code: monitor/src {monitor}, ipc {ipc}, sandbox {sandbox}, root {root}");
    assert!(monitor <= MONITOR, "monitor/src has {monitor} lines of code, {MONITOR} are allowed");
    assert!(root <= ROOT, "root has {root} lines of code of ours, {ROOT} are allowed");
}

#[test]
fn what_is_said_not_to_be_in_root_exists_and_is_not_used_by_it() {
    for (file, reason, words) in NOT_IN_ROOT {
        assert!(root().join(file).is_file() && !reason.is_empty(), "{file}");
        for (name, text) in ["monitor/src", "ipc/src", "sandbox/src"].into_iter().flat_map(in_root) {
            let used = |line: &&str| !line.contains("use ") && words.iter().any(|word| line.contains(word));
            assert!(!code(&text).any(|line| used(&line)), "{name} uses {file}");
        }
    }
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

/// The crates of `cargo tree`: those linked, and those that run at build time as or for proc-macros.
fn tree() -> (BTreeSet<String>, BTreeSet<String>) {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "-e",
            "normal",
            "--no-dedupe",
            "--prefix",
            "depth",
            "--format",
            " {p}",
            "-p",
            "monitor",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let (mut linked, mut built) = (BTreeSet::new(), BTreeSet::new());
    let mut below = usize::MAX;
    for line in String::from_utf8(tree.stdout).unwrap().lines().skip(1).filter(|line| !line.is_empty()) {
        let (depth, package) = line.split_once(' ').unwrap();
        let depth: usize = depth.parse().unwrap();
        let name = package.split(' ').next().unwrap().to_owned();
        if depth <= below {
            below = if package.contains("(proc-macro)") { depth } else { usize::MAX };
        }
        if below == usize::MAX {
            linked.insert(name)
        } else {
            built.insert(name)
        };
    }
    (linked, built)
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
    let (linked, built) = tree();
    assert_eq!(linked, allowed["[linked]"]);
    assert_eq!(built, allowed["[proc-macros]"]);
}
