//! What a taken-over worker may send to root.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::monitor_worker::FromWorker>(data));
