//! A client that sends anything: RFC 959 replies or a close, never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| worker_fuzz::session(data));
