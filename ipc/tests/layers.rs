//! Who may import whom, and where unsafe may stand: the walls of the house, held by reading manifests and sources.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Our crates, with the crates of ours each may link.
const LAYERS: &[(&str, &[&str])] = &[
    ("ipc", &[]),
    ("child-ipc", &["ipc"]),
    ("sandbox", &[]),
    ("child-sandbox", &["sandbox"]),
    ("kernels", &[]),
    ("stored-hash", &[]),
    ("monitor", &["ipc", "sandbox"]),
    ("broker", &["child-ipc", "child-sandbox", "ipc", "sandbox"]),
    ("config", &["child-ipc", "child-sandbox", "ipc", "sandbox", "stored-hash"]),
    ("ctl", &["ipc"]),
    ("worker", &["child-ipc", "child-sandbox", "ipc", "kernels", "sandbox"]),
    ("authd", &["child-ipc", "child-sandbox", "ipc", "kernels", "sandbox", "stored-hash"]),
];

/// Crates that only some processes may link, by what a flaw in them would reach.
const ONLY_UNDER: &[(&str, &[&str])] = &[
    ("argon2", &["authd"]),
    ("blake2", &["authd"]),
    ("md-5", &["worker"]),
    ("sha1", &["worker"]),
    ("rustls", &["worker", "authd", "bench"]),
    ("rcgen", &["ctl"]),
    ("aws-lc-rs", &["worker", "authd", "ctl", "bench"]),
    ("russh", &["worker"]),
    ("tokio", &["worker"]),
    ("mio", &["worker", "authd", "bench"]),
    ("toml", &["config"]),
    ("seccompiler", &["sandbox", "child-sandbox", "monitor", "broker", "config", "worker", "authd"]),
];

/// The only file that may hold unsafe code, beside each kernel's for an architecture.
const UNSAFE: &[&str] = &["sandbox/src/creds.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Every crate linked into `package`, itself left out: `cargo tree` over normal dependencies.
fn linked(package: &str) -> BTreeSet<String> {
    let out = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--format", "{p}", "-p", package])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().skip(1).filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn crates_import_only_what_lies_below_them() {
    let ours: BTreeSet<&str> = LAYERS.iter().map(|(name, _)| *name).chain(["bench", "e2e"]).collect();
    for (package, allowed) in LAYERS {
        for name in linked(package).iter().filter(|name| ours.contains(name.as_str())) {
            assert!(allowed.contains(&name.as_str()), "{package} links {name}");
        }
    }
}

#[test]
fn dangerous_crates_are_linked_only_by_the_processes_that_need_them() {
    for package in LAYERS.iter().map(|(name, _)| *name).chain(["bench"]) {
        let linked = linked(package);
        for (dangerous, processes) in ONLY_UNDER {
            assert!(
                !linked.contains(*dangerous) || processes.contains(&package),
                "{package} links {dangerous}, which belongs to {processes:?}"
            );
        }
    }
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() {
            if !["target", ".git", "fuzz", "results"].contains(&name.as_str()) {
                sources(&entry, found);
            }
        } else if name.ends_with(".rs") {
            found.push(entry);
        }
    }
}

/// Whether a file of the repository may hold unsafe code.
fn may_be_unsafe(file: &str) -> bool {
    let parts: Vec<_> = file.split('/').collect();
    let kernel = matches!(parts[..], ["kernels", "src", _, "x86_64.rs" | "aarch64.rs"]);
    // Tests play hostile processes and measure memory; they are linked into nothing.
    kernel
        || UNSAFE.contains(&file)
        || parts.contains(&"tests")
        || parts.contains(&"benches")
        || parts.contains(&"examples")
}

fn has_unsafe(text: &str) -> bool {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .any(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe"))
}

#[test]
fn unsafe_code_stands_only_in_the_named_files() {
    let mut files = vec![];
    sources(&root(), &mut files);
    assert!(files.len() > 20);
    for file in files {
        let name = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        if !may_be_unsafe(&name) {
            assert!(!has_unsafe(&fs::read_to_string(&file).unwrap()), "{name} holds unsafe code");
        }
    }
}

#[test]
fn every_crate_but_sandbox_and_kernels_forbids_unsafe_code() {
    const CRATES: &[&str] = &[
        "ipc",
        "ipc/child",
        "sandbox/child",
        "monitor",
        "monitor/broker",
        "monitor/config",
        "monitor/ctl",
        "worker",
        "authd",
        "authd/stored-hash",
    ];
    for dir in CRATES {
        let lib = fs::read_to_string(root().join(dir).join("src/lib.rs")).unwrap();
        assert!(lib.contains("#![forbid(unsafe_code)]"), "{dir}");
    }
}

#[test]
fn nobody_imports_the_benchmarks_or_the_end_to_end_tests() {
    for (package, _) in LAYERS {
        let linked = linked(package);
        assert!(!linked.contains("bench") && !linked.contains("e2e"), "{package}");
    }
}
