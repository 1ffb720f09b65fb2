//! The policies as data: sorted, unique, every row with a reason, the monitor's a superset of everybody's.

#[path = "../examples/confined/attempts.rs"]
mod attempts;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use attempts::attempts;
use child_sandbox::Role;
use child_sandbox::policy::{Policy, Row, Test, calls, inherited, monitor};

/// Prefixes of reasons that name what the C library or the Rust runtime does unasked.
const UNASKED: [&str; 2] = ["libc: ", "std: "];

/// The monitor's (`None`), and its children's.
fn policies() -> Vec<(Option<Role>, Policy)> {
    let children = Role::ALL.into_iter().map(|role| (Some(role), calls(role)));
    children.chain([(None, monitor())]).collect()
}

fn groups() -> Vec<(Option<Role>, &'static [Row])> {
    policies().into_iter().flat_map(|(role, groups)| groups.into_iter().map(move |group| (role, group))).collect()
}

#[test]
fn rows_are_sorted_and_unique() {
    for (role, group) in groups() {
        for pair in group.windows(2) {
            assert!(pair[0].symbol < pair[1].symbol, "{role:?}: {} before {}", pair[0].symbol, pair[1].symbol);
        }
    }
}

#[test]
fn no_call_is_in_two_groups_of_a_role_but_where_the_monitor_needs_more_of_it() {
    for (role, policy) in policies() {
        let mut seen = HashMap::new();
        for row in policy.into_iter().flatten() {
            let wider = |before: &Row| role.is_none() && row.when.is_empty() && !before.when.is_empty();
            assert!(seen.insert(row.number, row).is_none_or(wider), "{role:?}: {} twice", row.symbol);
        }
    }
}

#[test]
fn the_monitor_may_make_every_call_a_child_may_make_with_any_arguments_it_may_make_it_with() {
    // A child is born under the monitor's filter, and of two rows of a call the later counts.
    let monitor: HashMap<_, _> = monitor().into_iter().flatten().map(|row| (row.number, row.when)).collect();
    for (role, group) in groups() {
        for row in group {
            let covers = |when: &&[_]| when.is_empty() || *when == row.when;
            assert!(monitor.get(&row.number).is_some_and(covers), "{role:?}: {}", row.symbol);
        }
    }
}

#[test]
fn what_the_monitor_has_for_its_childrens_sake_is_on_the_list_of_one() {
    let children: HashSet<_> = Role::ALL.into_iter().flat_map(calls).flatten().map(|row| row.number).collect();
    for row in inherited::CALLS {
        assert!(children.contains(&row.number), "{}", row.symbol);
    }
}

#[test]
fn every_reason_names_a_file_that_exists_or_what_the_runtime_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    for (role, group) in groups() {
        for row in group {
            let file = row.reason.split([' ', ';', ':', ',']).find(|word| word.contains('/'));
            let named = file.is_some_and(|file| file.contains("/src") && root.join(file).exists());
            let unasked = UNASKED.iter().any(|p| row.reason.starts_with(p) && row.reason.len() > p.len());
            assert!(named || unasked, "{role:?}: {}: {:?}", row.symbol, row.reason);
        }
    }
}

#[test]
fn conditions_look_at_arguments_that_exist() {
    for (role, group) in groups() {
        for cond in group.iter().flat_map(|row| row.when) {
            assert!(cond.arg < 6, "{role:?}");
            let empty = matches!(cond.test, Test::OneOf(v) if v.is_empty());
            assert!(!empty, "{role:?}");
        }
    }
}

/// Calls that take a path, make a socket or a process, or change an object through a descriptor that was meant for reading.
#[rustfmt::skip]
const NEVER_WITHOUT_FILES: &[&str] = &[
    "open", "openat", "openat2", "creat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "chmod",
    "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "futimesat", "utimensat",
    "setxattr", "lsetxattr", "fsetxattr", "getxattr", "truncate", "statfs", "chdir", "fchdir", "getdents64", "readlink",
    "readlinkat", "socket", "socketpair", "connect", "bind", "listen", "execve", "execveat", "fork", "vfork", "clone", "clone3",
    "ptrace", "kill", "tkill", "pidfd_open", "flock", "memfd_create", "io_uring_enter", "io_uring_setup", "sendmmsg", "seccomp",
];

#[test]
fn no_worker_has_a_call_that_takes_a_path_or_makes_a_socket_or_process() {
    for role in [Role::WorkerFtp, Role::WorkerSsh, Role::Authd] {
        for row in calls(role).into_iter().flatten() {
            let name = row.symbol.trim_start_matches("SYS_");
            // The table of certificates is of authd's making: a memfd, which is no way to any file.
            let table = role == Role::Authd && name == "memfd_create";
            assert!(table || !NEVER_WITHOUT_FILES.contains(&name), "{role:?}: {}", row.symbol);
        }
    }
}

#[test]
fn attempts_have_unique_names_and_every_role_has_some() {
    for (role, _) in policies() {
        let names: Vec<_> = attempts(role).map(|a| a.name).collect();
        assert!(names.len() >= 15, "{role:?}");
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{role:?}");
    }
}
