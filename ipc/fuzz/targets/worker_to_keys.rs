//! What a taken-over worker may send to authd's signing thread.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::worker_keys::ToKeys>(data));
