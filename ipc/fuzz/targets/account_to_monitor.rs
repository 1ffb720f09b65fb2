//! A record of the table of accounts, as root reads it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ipc_fuzz::record::<child_ipc::link::monitor_config::Account>(data));
