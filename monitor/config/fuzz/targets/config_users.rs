//! Bytes of a users.toml.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| config_fuzz::files(b"[[listen]]\naddress = \"127.0.0.1:2121\"\n", data));
