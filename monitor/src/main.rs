//! caissond: the root process. Everything is in lib.rs, so that tests can reach it.

fn main() -> std::process::ExitCode {
    monitor::run()
}
