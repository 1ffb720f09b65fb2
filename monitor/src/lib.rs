//! caissond: the root process. Owns listeners, starts children, answers few questions.
//!
//! Runs as root with few capabilities, under its own seccomp filter. Reads from: children (hostile);
//! caissonctl. Opens two files of the admin's at start and reload, and has caisson-config read them. Never: a byte from the network, a path or length a client chose, a password.
//!
//! start.rs is the ladder, monitor.rs the loop, table.rs what may be asked, answer/ what is answered.
//! Not here: sandbox/ (what each process may do), ipc/ (the links), monitor/broker (files), monitor/config (keywords
//! and TOML), monitor/ctl (the admin's command).
#![forbid(unsafe_code)]

mod answer;
mod args;
mod certificates;
mod children;
mod config;
mod control;
mod ledger;
mod listen;
mod log;
mod monitor;
mod notify;
mod reap;
mod reload;
mod spawn;
mod start;
mod table;
mod timer;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{self, ExitCode};

use args::Command;

/// Does what the command line says. Any failure is one line on standard error and exit status 1.
pub fn run() -> ExitCode {
    let done = args::parse(std::env::args_os().skip(1)).and_then(|command| match command {
        Command::Print(text) => {
            print!("{text}");
            Ok(())
        }
        Command::Daemon { file, check, report } => start::run(file, check, report),
        Command::Serve(words) => Err(quick_start(words)),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("caissond: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Becomes `caissonctl serve`, which becomes caissond again; returns only to say why not.
fn quick_start(words: Vec<OsString>) -> String {
    let run = |program| process::Command::new(program).arg("serve").args(words).exec();
    spawn::find("caissonctl", None, "../bin").map_or_else(|why| why, |program| format!("caissonctl: {}", run(program)))
}
