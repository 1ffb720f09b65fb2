//! caissonctl: the command of the admin. Everything is in lib.rs, so that tests can reach it.

fn main() -> std::process::ExitCode {
    ctl::run()
}
