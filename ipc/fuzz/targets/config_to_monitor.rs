//! What caisson-config may send to root.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::monitor_config::FromConfig>(data));
