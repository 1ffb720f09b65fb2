//! caisson-worker: everything is in the library, so that tests and fuzzers reach it.
fn main() -> std::process::ExitCode {
    worker::main()
}
