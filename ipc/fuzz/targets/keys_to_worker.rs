//! What a taken-over authd may answer a worker that wants a signature.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::worker_keys::FromKeys>(data));
