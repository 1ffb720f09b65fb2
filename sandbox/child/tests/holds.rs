//! What /proc says of a confined process: ids, capabilities, filter, namespaces, root. And what a child does with its first descriptors.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::io::AsFd;
use std::process::{Command, Stdio};

use child_sandbox::Role;
use common::{Confined, End, NOBODY, Place, Start, start};

fn waiting(begun: Start, role: impl Into<Option<Role>>, rights: &str, place: &Place) -> Confined {
    let process = start(begun, "confined", role, rights, "wait", place);
    let said = process.hear();
    assert!(said.starts_with("ready"), "{said}");
    process
}

fn release(process: Confined, place: &Place) {
    common::send(&process.link, &[place.listener.as_fd()]);
    assert_eq!(process.end(), End::Said("done".into()));
}

fn proc(process: &Confined, file: &str) -> String {
    let path = format!("/proc/{}/{file}", process.child.id());
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} in {status}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

const CHILDREN: [Role; 4] = [Role::Authd, Role::WorkerFtp, Role::WorkerSsh, Role::Broker];

#[test]
fn a_child_has_its_uid_no_capability_and_a_filter() {
    for begun in Start::possible() {
        for role in CHILDREN {
            let place = Place::new();
            let child = waiting(begun, role, "all", &place);
            let status = proc(&child, "status");
            for (name, wanted) in [("Seccomp", "2"), ("NoNewPrivs", "1")] {
                assert_eq!(field(&status, name), wanted, "{role:?} {name}");
            }
            for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
                assert_eq!(field(&status, set), "0000000000000000", "{role:?} {set}");
            }
            if common::is_root() {
                assert_eq!(field(&status, "Uid"), [NOBODY.to_string().as_str(); 4].join(" "));
                assert_eq!(field(&status, "Gid"), [NOBODY.to_string().as_str(); 4].join(" "));
            }
            if begun == Start::AsRoot {
                assert_eq!(field(&status, "CapBnd"), "0000000000000000", "{role:?}");
                assert_eq!(field(&status, "Groups"), "");
            }
            // Not dumpable: the process's files in /proc are root's.
            assert_eq!(fs::metadata(format!("/proc/{}/environ", child.child.id())).expect("/proc").uid(), 0);
            let limits = proc(&child, "limits");
            let core =
                limits.lines().find_map(|l| l.strip_prefix("Max core file size")).expect("the limit of core files");
            assert_eq!(core.split_whitespace().collect::<Vec<_>>(), ["0", "0", "bytes"]);
            release(child, &place);
        }
    }
}

#[test]
fn started_as_root_a_child_has_namespaces_of_its_own() {
    if !common::is_root() {
        return;
    }
    for role in CHILDREN {
        let place = Place::new();
        let child = waiting(Start::AsRoot, role, "all", &place);
        for kind in ["mnt", "net", "ipc", "uts"] {
            let theirs = fs::read_link(format!("/proc/{}/ns/{kind}", child.child.id())).expect("/proc");
            assert_ne!(theirs, fs::read_link(format!("/proc/self/ns/{kind}")).expect("/proc"), "{role:?} {kind}");
        }
        release(child, &place);
    }
}

#[test]
fn started_as_root_workers_and_authd_see_an_empty_read_only_root() {
    if !common::is_root() {
        return;
    }
    for role in [Role::Authd, Role::WorkerFtp, Role::WorkerSsh] {
        let place = Place::new();
        let child = waiting(Start::AsRoot, role, "all", &place);
        let mounts = proc(&child, "mountinfo");
        assert_eq!(mounts.lines().count(), 1, "{mounts}");
        assert!(mounts.contains(" / / ro,nosuid,nodev,noexec,relatime "), "{mounts}");
        assert_eq!(fs::read_dir(format!("/proc/{}/root", child.child.id())).expect("its root").count(), 0);
        release(child, &place);
    }
}

#[test]
fn started_as_root_a_broker_sees_its_account_and_nothing_else() {
    if !common::is_root() {
        return;
    }
    for (rights, mode) in [("all", "rw"), ("read", "ro")] {
        let place = Place::new();
        let child = waiting(Start::AsRoot, Role::Broker, rights, &place);
        let mounts = proc(&child, "mountinfo");
        assert_eq!(mounts.lines().count(), 1, "{mounts}");
        assert!(mounts.contains(&format!("/account / {mode},nosuid,nodev,noexec,relatime ")), "{mounts}");
        // Descriptor 4 was the account's in the old mount namespace: it must lead nowhere now but into the new one.
        let info = proc(&child, "fdinfo/4");
        let new = mounts.split(' ').next().expect("a mount id");
        assert!(info.lines().any(|l| l.split_whitespace().eq(["mnt_id:", new])), "{info}{mounts}");
        release(child, &place);
    }
}

#[test]
fn a_broker_keeps_the_mounts_beneath_its_root_without_set_uid_devices_and_programs() {
    if !common::is_root() {
        return;
    }
    let place = Place::new();
    let beneath = place.dir.join("account/disk");
    fs::create_dir(&beneath).expect("a directory");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&beneath).status().expect("mount(8)");
    assert!(mounted.success());
    let child = waiting(Start::AsRoot, Role::Broker, "all", &place);
    let mounts = proc(&child, "mountinfo");
    let unmounted = Command::new("umount").arg(&beneath).status().expect("umount(8)");
    assert!(mounts.contains(" / /disk rw,nosuid,nodev,noexec,relatime "), "{mounts}");
    assert!(unmounted.success());
    release(child, &place);
}

#[test]
fn a_child_keeps_its_link_and_nothing_else_it_was_born_with() {
    let place = Place::new();
    let leaked = rustix::io::fcntl_dupfd_cloexec(&place.listener, 100).expect("a descriptor");
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).expect("one that survives exec");
    let child = start(Start::AsUser, "alone", Role::WorkerFtp, "none", "descriptors", &place);
    assert_eq!(child.hear(), "ready");
    // 0 is /dev/null, 3 the link, 4 to 6 what came over it, 7 the directory it reads.
    assert_eq!(child.end(), End::Said("/dev/null 0 1 2 3 4 5 6 7".into()));
}

#[test]
fn a_child_started_by_hand_says_who_should_start_it() {
    let place = Place::new();
    let by_hand = Command::new(place.program())
        .args(["alone", "worker-ftp", "-", "none", "report"])
        .stdin(Stdio::null())
        .output()
        .expect("the program");
    assert_eq!(by_hand.status.code(), Some(1));
    let said = String::from_utf8_lossy(&by_hand.stderr);
    assert!(said.contains("descriptor 0 is not a link to caissond"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn the_monitor_keeps_few_capabilities() {
    if !common::is_root() {
        return;
    }
    let place = Place::new();
    let monitor = waiting(Start::AsRoot, None, "none", &place);
    let status = proc(&monitor, "status");
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        let bits = u64::from_str_radix(&field(&status, set), 16).expect("hexadecimal");
        assert!((1..=9).contains(&bits.count_ones()), "{set} {bits:x}");
        for (name, capability) in [("DAC_OVERRIDE", 1), ("NET_ADMIN", 12), ("SYS_MODULE", 16), ("SYS_PTRACE", 19)] {
            assert_eq!(bits & (1 << capability), 0, "{set} has {name}");
        }
    }
    assert_eq!(field(&status, "Seccomp"), "2");
    release(monitor, &place);
}
