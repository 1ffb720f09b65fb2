//! What a taken-over worker may want signed: nothing but two kinds of handshake messages is.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| authd_fuzz::sign_input(data));
