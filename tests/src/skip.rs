//! Says that a scenario cannot be played here; also part of other crates' tests, so it uses std alone.

use std::{env, fs::File, io::Write};

/// This scenario is not played, for that reason. `tests/run` tells of all such at the end: what a passing test prints nobody
/// sees.
///
/// # Panics
/// The list of `tests/run` cannot be written.
pub fn skipped(scenario: &str, why: &str) {
    let line = format!("{scenario}: {why}\n");
    eprint!("skipped: {line}");
    if let Some(list) = env::var_os("CAISSON_SKIPPED") {
        let file = File::options().append(true).create(true).open(list);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("write the list CAISSON_SKIPPED names");
    }
}
