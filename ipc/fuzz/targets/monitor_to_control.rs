//! What caissonctl receives.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::control::Reply>(data));
