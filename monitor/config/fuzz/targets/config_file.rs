//! Bytes of a caisson.toml.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| config_fuzz::files(data, b""));
