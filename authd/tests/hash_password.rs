//! The command that makes stored hashes.

mod harness;

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Command, Output, Stdio},
};

use child_ipc::link::worker_authd::Outcome::{Accepted, Rejected};
use harness::{Authd, PLAIN, account};
use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use stored_hash::{Cost, Stored};

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_caisson-authd"));
    program.arg("hash-password");
    program
}

fn hash(input: &[u8]) -> Output {
    let mut child = program().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Fails when the program has read enough.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn what_it_prints_lets_the_password_in_and_no_other() {
    let made = hash(b"open sesame\nsecond line\n");
    assert!(made.status.success() && made.stderr.is_empty());
    let phc = String::from_utf8(made.stdout).unwrap();
    let phc = phc.strip_suffix('\n').unwrap();
    let stored = Stored::parse(phc.as_bytes()).unwrap();
    assert_eq!((stored.cost(), stored.salt().len(), stored.digest().len()), (Cost::DEFAULT, 16, 32));

    let mut authd = Authd::start(PLAIN);
    authd.set_users(&[account("alice", phc)]);
    let mut worker = authd.add_worker();
    worker.ask(1, b"open sesame");
    assert_eq!(worker.hear(), (1, Accepted));
    worker.ask(2, b"open sesame\n");
    assert_eq!(worker.hear(), (2, Rejected));
}

#[test]
fn the_same_password_gets_another_salt_each_time() {
    assert_ne!(hash(b"x\n").stdout, hash(b"x\n").stdout);
}

#[test]
fn a_password_that_cannot_be_is_refused_with_a_line_and_no_hash() {
    for (input, why) in [
        (&b""[..], "empty"),
        (b"\n", "empty"),
        (&[b'x'; 513], "longer than 512"),
        (b"a\0b\n", "no FTP client can send"),
    ] {
        let made = hash(input);
        let words = String::from_utf8(made.stderr).unwrap();
        assert!(made.status.code() == Some(1) && made.stdout.is_empty());
        assert!(words.contains(why) && words.lines().count() == 1, "{words}");
    }
}

/// Types `lines` at a terminal; what the terminal shows, and what standard output got.
fn type_at_a_terminal(lines: &[&str]) -> (String, Output) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, vec![]).unwrap();
    let theirs: OwnedFd =
        rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut child = program()
        .stdin(Stdio::from(theirs.try_clone().unwrap()))
        .stderr(Stdio::from(theirs))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut terminal = File::from(ours);
    let mut shown = String::new();
    for line in lines {
        while !shown.ends_with(": ") {
            let mut piece = [0; 256];
            let count = terminal.read(&mut piece).unwrap();
            shown.push_str(std::str::from_utf8(&piece[..count]).unwrap());
        }
        shown.push('|');
        terminal.write_all(line.as_bytes()).unwrap();
    }
    let mut out = vec![];
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    let status = child.wait().unwrap();
    // Ends with EIO once the other end is closed.
    let mut rest = vec![];
    let _ = terminal.read_to_end(&mut rest);
    shown.push_str(&String::from_utf8(rest).unwrap());
    (shown, Output { status, stdout: out, stderr: vec![] })
}

#[test]
fn at_a_terminal_it_asks_twice_and_shows_nothing_of_the_password() {
    let (shown, made) = type_at_a_terminal(&["open sesame\n", "open sesame\n"]);
    assert!(made.status.success(), "{shown}");
    assert_eq!(shown, "Password: |\r\nAgain: |\r\n");
    assert!(Stored::parse(made.stdout.trim_ascii_end()).is_ok());
}

#[test]
fn at_a_terminal_two_different_passwords_make_no_hash() {
    let (shown, made) = type_at_a_terminal(&["open sesame\n", "open sesam\n"]);
    assert!(!made.status.success() && made.stdout.is_empty());
    assert!(shown.contains("differ") && !shown.contains("sesam"), "{shown}");
}

#[test]
fn an_interrupt_at_the_terminal_makes_no_hash() {
    let (shown, made) = type_at_a_terminal(&["open\x03\n"]);
    assert!(!made.status.success() && made.stdout.is_empty());
    assert!(shown.contains("interrupted"), "{shown}");
}
