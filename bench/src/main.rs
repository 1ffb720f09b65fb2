//! `bench`: measures Caisson beside its peers. Everything is in lib.rs, so that tests reach it.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    bench::main()
}
