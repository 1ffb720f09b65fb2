//! What a worker receives from a broker.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::worker_broker::Answer>(data));
