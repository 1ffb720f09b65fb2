//! What a worker receives from the monitor.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::monitor_worker::ToWorker>(data));
