//! What caisson-config receives.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::monitor_config::ToConfig>(data));
