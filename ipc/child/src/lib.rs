//! The ground the monitor's children stand on: all of [`ipc`], and what root has no end of.
//!
//! A crate of its own so that root's program cannot link it: `cargo tree -p monitor` shows what root links, and
//! `monitor/tests/tcb.rs` counts all of that. Everything of [`ipc`] is here under the same name, so children use this crate alone.
//!
//! | link | ends | carries |
//! |---|---|---|
//! | [`link::worker_authd`] | worker, authd | password checks and verdicts |
//! | [`link::worker_keys`] | worker, authd | signatures of TLS handshakes |
//! | [`link::worker_broker`] | worker, broker | one record a file operation |
//!
//! Beside them what one child tells another and the monitor hands on unread: settings ([`link::settings`], [`link::places`]) and
//! authd's table ([`link::user_record`]); and the types these are made of. [`types::Build`] covers them: a child of another build
//! is refused by its first record.
#![forbid(unsafe_code)]

pub mod link;
pub mod types;

pub use ipc::*;
