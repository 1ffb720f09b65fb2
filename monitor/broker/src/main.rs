//! caisson-broker: see lib.rs.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    broker::run()
}
