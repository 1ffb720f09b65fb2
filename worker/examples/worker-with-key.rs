//! For tests alone: the worker with a certificate whose key it has in memory, which the real one never has.

use std::process::ExitCode;

#[path = "../tests/links/keys.rs"]
#[allow(dead_code, reason = "the tests use the rest of it")]
mod keys;

fn main() -> ExitCode {
    worker::main_with(Some(keys::certificates()))
}
