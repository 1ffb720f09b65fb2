//! Bytes of a control connection, cut anywhere: the same lines come out, and none holds what ends lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&[u8], &[u8])| worker_fuzz::lines(input.0, input.1));
