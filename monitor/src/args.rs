//! The command line. Its usage text is the SYNOPSIS of caissond(8); tests/man.rs compares them.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser};

/// What `-h` prints.
pub const USAGE: &str = "\
usage: caissond [-f file] [-n] [-r]
       caissond serve dir [--ftp addr:port] [--user name] [--password-file file] [--passive first-last]
       caissond --version | -h
";

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// Run by a configuration file; `check` only judges it, `report` says on standard output when everything is ready.
    Daemon { file: PathBuf, check: bool, report: bool },
    /// Quick start, by these words: caissonctl's to understand (monitor/ctl/src/serve.rs).
    Serve(Vec<OsString>),
    /// Print something and leave.
    Print(String),
}

/// Parses the words behind the program's name. The error is one line, and the usage.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    command(&mut Parser::from_args(words)).map_err(|e| format!("{e}\n{}", USAGE.trim_end()))
}

fn command(parser: &mut Parser) -> Result<Command, lexopt::Error> {
    let (mut file, mut check, mut report) = (PathBuf::from("/etc/caisson/caisson.toml"), false, false);
    while let Some(arg) = parser.next()? {
        match arg {
            // A reload comes after the change to the root directory.
            Arg::Short('f') => file = std::path::absolute(parser.value()?).map_err(|e| format!("-f: {e}"))?,
            Arg::Short('n') => check = true,
            Arg::Short('r') => report = true,
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(USAGE.to_owned())),
            Arg::Long("version") => return Ok(Command::Print(format!("caissond {}\n", env!("CARGO_PKG_VERSION")))),
            Arg::Value(word) if word == "serve" => return Ok(Command::Serve(parser.raw_args()?.collect())),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Daemon { file, check, report })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn nothing_said_means_the_file_of_the_system() {
        let system = |file: &PathBuf| file.ends_with("caisson/caisson.toml");
        assert!(matches!(parsed(""), Ok(Command::Daemon { file, check: false, report: false }) if system(&file)));
        assert!(matches!(parsed("-n -f x"), Ok(Command::Daemon { file, check: true, .. }) if file.ends_with("x")));
    }

    #[test]
    fn quick_start_is_handed_on_as_it_is() {
        assert!(matches!(parsed("serve /srv --ftp x -n"), Ok(Command::Serve(words)) if words.len() == 4));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, wrong) in [("--frobnicate", "frobnicate"), ("a", "a"), ("-f", "-f")] {
            assert!(parsed(line).unwrap_err().contains(wrong), "{line}");
        }
    }
}
