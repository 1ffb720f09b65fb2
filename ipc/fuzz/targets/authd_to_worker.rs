//! What a worker receives from authd.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::worker_authd::FromAuthd>(data));
