//! The promises in numbers, and what measures them against real peers.
//!
//! Three processes: the *keeper* makes and removes the place of the run (keeper.rs, site.rs), the *measurer* starts
//! servers and plays the client (measure.rs), and each server runs as its own tree of processes. Whatever ends the
//! measurer, the keeper ends and reaps what is left.
//!
//! - what is started: `servers/`, a file each; `floor.rs` is the bound to compare with
//! - what is measured: `rows/`, a file each, with `client.rs` and `crowd.rs` as the clients and `proc.rs` as the scales
//! - what is said about it: `report/`, with the promises in `report/bars.rs`
//!
//! Not here: any check of the servers' correctness (tests/). Nothing imports this crate.
#![forbid(unsafe_code)]

pub mod args;
pub mod client;
pub mod crowd;
pub mod error;
pub mod floor;
pub mod keeper;
pub mod machine;
pub mod measure;
pub mod plan;
pub mod proc;
pub mod report;
pub mod rows;
pub mod servers;
pub mod site;
pub mod tls;

use std::process::ExitCode;

use args::Args;
use error::Result;

/// Runs the program: as the keeper, unless the first word makes it the measurer or the floor.
pub fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    let role = words.first().and_then(|w| w.to_str()).unwrap_or_default().to_owned();
    let ended = match role.as_str() {
        "floor" => floor::main(&words[1..]).map(|()| true),
        keeper::MEASURE => {
            words.remove(0);
            Args::parse(words).and_then(|args| measure::main(&args))
        }
        _ => keep(words),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("bench: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn keep(words: Vec<std::ffi::OsString>) -> Result<bool> {
    let args = Args::parse(words.clone())?;
    if args.help {
        print!("{}", args::USAGE);
        return Ok(true);
    }
    rows::check_names(&args.only)?;
    servers::check_names(&args.servers)?;
    if args.list {
        print!("{}", report::listing());
        return Ok(true);
    }
    keeper::main(&words)
}
