//! The command line. Its usage text is the SYNOPSIS of caissond(8); tests/man.rs compares them.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use ipc::types::UserName;
use lexopt::{Arg, Parser, ValueExt};

use crate::config::Ports;

/// What `-h` prints.
pub const USAGE: &str = "\
usage: caissond [-f file] [-n]
       caissond serve dir [--ftp addr:port] [--user name] [--password-file file] [--passive first-last]
       caissond --version | -h
";

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// Run by a configuration file; `check` only judges it.
    Daemon { file: PathBuf, check: bool },
    /// Quick start.
    Serve(Serve),
    /// Print something and leave.
    Print(String),
}

/// `caissond serve`.
#[derive(Debug)]
pub(crate) struct Serve {
    /// What to serve.
    pub dir: PathBuf,
    /// `--ftp`.
    pub ftp: SocketAddr,
    /// `--user`.
    pub user: UserName,
    /// `--password-file`; without it a password is drawn.
    pub password_file: Option<PathBuf>,
    /// `--passive`.
    pub passive: Ports,
}

/// Parses the words behind the program's name. The error is one line.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut parser = Parser::from_args(words);
    command(&mut parser).map_err(|e| format!("{e}\n{}", USAGE.trim_end()))
}

fn command(parser: &mut Parser) -> Result<Command, lexopt::Error> {
    let mut daemon = (PathBuf::from("/etc/caisson/caisson.toml"), false);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('f') => daemon.0 = parser.value()?.into(),
            Arg::Short('n') => daemon.1 = true,
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(USAGE.to_owned())),
            Arg::Long("version") => {
                return Ok(Command::Print(format!("caissond {}\n", env!("CARGO_PKG_VERSION"))));
            }
            Arg::Value(word) if word == "serve" => return serve(parser).map(Command::Serve),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Daemon { file: daemon.0, check: daemon.1 })
}

fn serve(parser: &mut Parser) -> Result<Serve, lexopt::Error> {
    let mut dir = None;
    let mut ftp = SocketAddr::from(([127, 0, 0, 1], 2121));
    let mut user = UserName::new(b"caisson");
    let mut password_file = None;
    let mut passive = Ports { first: 50_000, last: 50_999 };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Value(word) if dir.is_none() => dir = Some(PathBuf::from(word)),
            Arg::Long("ftp") => ftp = parser.value()?.parse()?,
            Arg::Long("user") => user = UserName::new(parser.value()?.as_encoded_bytes()),
            Arg::Long("password-file") => password_file = Some(parser.value()?.into()),
            Arg::Long("passive") => {
                let range = parser.value()?.string()?;
                passive = Ports::parse(&range).ok_or("--passive: expected FIRST-LAST, ports from 1024 to 65535")?;
            }
            Arg::Long(later @ ("ftps" | "sftp")) => return Err(format!("--{later}: not in this version").into()),
            other => return Err(other.unexpected()),
        }
    }
    let user = user.ok_or("--user: expected 1 to 64 bytes without control bytes, / and :")?;
    let dir = dir.ok_or("serve: expected a directory")?;
    Ok(Serve { dir, ftp, user, password_file, passive })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn nothing_said_means_the_file_of_the_system() {
        assert!(
            matches!(parsed(""), Ok(Command::Daemon { file, check: false }) if file.ends_with("caisson/caisson.toml"))
        );
        assert!(matches!(parsed("-n -f x"), Ok(Command::Daemon { file, check: true }) if file.ends_with("x")));
    }

    #[test]
    fn quick_start_takes_its_options_on_either_side_of_the_directory() {
        let Ok(Command::Serve(serve)) = parsed("serve --ftp [::1]:2100 /srv --user bob --passive 2000-2009") else {
            panic!("not understood")
        };
        assert_eq!((serve.ftp.port(), serve.user.as_bytes(), serve.passive.last), (2100, &b"bob"[..], 2009));
    }

    #[test]
    fn protocols_to_come_are_refused_by_name() {
        assert!(parsed("serve /srv --sftp 127.0.0.1:22").unwrap_err().contains("--sftp: not in this version"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, wrong) in
            [("serve", "directory"), ("serve / --ftp x", "x"), ("--frobnicate", "frobnicate"), ("a", "a")]
        {
            assert!(parsed(line).unwrap_err().contains(wrong), "{line}");
        }
        assert!(parsed("serve / --passive 10-20").is_err());
        assert!(parsed("serve / --user a/b").unwrap_err().contains("--user"));
    }
}
