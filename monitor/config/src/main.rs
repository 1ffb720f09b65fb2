//! caisson-config: see lib.rs.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    config::run()
}
