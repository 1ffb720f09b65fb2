//! caissonctl: asks the running caissond over its control socket, or runs the program that knows the answer.
//!
//! Runs as the admin, usually root. Reads from: the command line, and caissond (trusted). Checks nothing itself: `check` is
//! `caissond -n` and `hash-password` is `caisson-authd hash-password`, so that there is one judge of each.
#![forbid(unsafe_code)]

mod certificate;
mod serve;

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, ExitCode},
};

use ipc::{
    Channel, RecvError,
    link::control::{Command, Reply, Request},
    types::{Build, UserName},
};
use lexopt::{Arg, Parser};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// What `-h` prints.
pub const USAGE: &str = "\
usage: caissonctl check [-f file]
       caissonctl hash-password
       caissonctl [-s socket] kick user
       caissonctl make-certificate dir name ...
       caissonctl [-s socket] reload
       caissonctl serve dir [--ftp addr:port] [--user name] [--password-file file] [--passive first-last]
       caissonctl [-s socket] status
       caissonctl --version | -h
";

/// Where caissond listens for us unless its configuration says otherwise.
const SOCKET: &str = "/run/caisson/control.sock";

enum Task {
    Print(String),
    Run(&'static str, Vec<OsString>),
    Ask(PathBuf, Command),
    Serve(serve::Serve),
    MakeCertificate(certificate::Make),
}

/// Does what the command line says. Any failure is one line on standard error and exit status 1.
pub fn run() -> ExitCode {
    let done = parse(std::env::args_os().skip(1)).and_then(|task| match task {
        Task::Print(text) => {
            print!("{text}");
            Ok(true)
        }
        Task::Run(program, words) => Err(become_program(program, &words)),
        Task::Ask(socket, command) => ask(&socket, command),
        Task::Serve(serve) => Err(serve::run(&serve)),
        Task::MakeCertificate(make) => certificate::run(&make).map(|section| {
            print!("{section}");
            true
        }),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("caissonctl: {why}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Task, String> {
    let mut parser = Parser::from_args(words);
    task(&mut parser).map_err(|e| format!("{e}\n{}", USAGE.trim_end()))
}

fn task(parser: &mut Parser) -> Result<Task, lexopt::Error> {
    let mut socket = PathBuf::from(SOCKET);
    let mut file = None;
    let mut words = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(Task::Print(USAGE.to_owned())),
            Arg::Long("version") => return Ok(Task::Print(format!("caissonctl {}\n", env!("CARGO_PKG_VERSION")))),
            Arg::Short('s') => socket = parser.value()?.into(),
            Arg::Short('f') => file = Some(parser.value()?),
            Arg::Value(word) if word == "serve" && words.is_empty() => return serve::parse(parser).map(Task::Serve),
            Arg::Value(word) if word == "make-certificate" && words.is_empty() => {
                return certificate::parse(parser).map(Task::MakeCertificate);
            }
            Arg::Value(word) => words.push(word),
            other => return Err(other.unexpected()),
        }
    }
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or("\u{fffd}")).collect();
    match (&words[..], file) {
        (["check"], None) => Ok(Task::Run("caissond", vec!["-n".into()])),
        (["check"], Some(file)) => Ok(Task::Run("caissond", vec!["-n".into(), "-f".into(), file])),
        (["hash-password"], None) => Ok(Task::Run("caisson-authd", vec!["hash-password".into()])),
        (["reload"], None) => Ok(Task::Ask(socket, Command::Reload)),
        (["status"], None) => Ok(Task::Ask(socket, Command::Status)),
        (["kick", user], None) => {
            let user = UserName::new(user.as_bytes()).ok_or("kick: expected the name of an account")?;
            Ok(Task::Ask(socket, Command::Kick(user)))
        }
        (["check" | "hash-password" | "reload" | "status" | "kick", ..], _) => Err("wrong arguments".into()),
        ([], _) => Err("expected a command".into()),
        ([other, ..], _) => Err(format!("{other}: unknown command").into()),
    }
}

/// Becomes another program of ours; returns only to say why not.
fn become_program(name: &str, words: &[OsString]) -> String {
    match find_program(name) {
        Ok(program) => format!("{}: {}", program.display(), process::Command::new(&program).args(words).exec()),
        Err(why) => why,
    }
}

/// Looks beside us, in ../sbin and in ../libexec/caisson from there.
fn find_program(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("/proc/self/exe: {e}"))?;
    let dir = own.parent().unwrap_or(Path::new("/"));
    let dirs = [dir.to_owned(), dir.join("../sbin"), dir.join("../libexec/caisson")];
    dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file()).ok_or_else(|| {
        let dirs: Vec<_> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        format!("no {name} in {}", dirs.join(", "))
    })
}

/// Asks caissond and prints what it says; whether it was done.
fn ask(path: &Path, command: Command) -> Result<bool, String> {
    let fail = |e: io::Error| {
        let hint = match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "; is caissond running? (-s names its control_socket)"
            }
            io::ErrorKind::PermissionDenied => "; only root and the user caissond runs as may ask",
            _ => "",
        };
        format!("{}: {e}{hint}", path.display())
    };
    let mut link = dial(path).map_err(fail)?;
    let sent = link.send(&Request { build: Build::THIS, command }, &[]);
    sent.map_err(|e| format!("{}: {e:?}", path.display()))?;
    loop {
        match link.recv().map(|received| received.record) {
            Ok(Reply::Line(line)) => {
                let mut text = line.as_bytes().to_vec();
                text.push(b'\n');
                io::stdout().write_all(&text).map_err(|e| format!("standard output: {e}"))?;
            }
            Ok(Reply::Done(done)) => return Ok(done),
            Err(RecvError::Io(e)) => return Err(fail(e)),
            Err(RecvError::Breach(breach)) => return Err(format!("{}: {breach}; of another version?", path.display())),
            Err(RecvError::Closed | RecvError::WouldBlock) => {
                return Err(format!("{}: caissond hung up: not root, busy, or of another version", path.display()));
            }
        }
    }
}

fn dial(path: &Path) -> io::Result<Channel<Request, Reply>> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Channel::from_fd(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn each_command_of_the_usage_text_is_understood() {
        assert!(matches!(parsed("check"), Ok(Task::Run("caissond", words)) if words == ["-n"]));
        assert!(matches!(parsed("check -f x"), Ok(Task::Run("caissond", words)) if words == ["-n", "-f", "x"]));
        assert!(matches!(parsed("hash-password"), Ok(Task::Run("caisson-authd", _))));
        assert!(matches!(parsed("reload"), Ok(Task::Ask(path, Command::Reload)) if path == Path::new(SOCKET)));
        assert!(matches!(parsed("-s /s status"), Ok(Task::Ask(path, Command::Status)) if path == Path::new("/s")));
        assert!(matches!(parsed("make-certificate /d a"), Ok(Task::MakeCertificate(_))));
        assert!(matches!(parsed("kick alice"), Ok(Task::Ask(_, Command::Kick(user))) if user.as_bytes() == b"alice"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in
            [("", "command"), ("frob", "frob"), ("kick", "arguments"), ("kick a/b", "account"), ("-x", "x")]
        {
            assert!(parsed(line).is_err_and(|why| why.contains(word)), "{line}");
        }
    }

    #[test]
    fn a_daemon_that_does_not_run_is_told_with_the_remedy() {
        let why = ask(Path::new("/nonexistent/control.sock"), Command::Status).unwrap_err();
        assert!(why.contains("/nonexistent/control.sock") && why.contains("is caissond running?"), "{why}");
    }
}
