//! caisson-authd: see the library, which tests can reach.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    authd::main()
}
