//! What a proxy sends first: the same header comes out however its bytes are cut, and never one longer than its bound.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| worker_fuzz::proxy_header(data));
