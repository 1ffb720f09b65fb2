//! The ground every process stands on: typed links, one record a datagram, with its descriptors.
//!
//! Imports no crate of ours. A link is an `AF_UNIX` `SOCK_SEQPACKET` socket pair made by the monitor; each end is a
//! [`Channel`] whose two type parameters are swapped at the other end. Every record is treated as hostile when it is
//! received: length cap, descriptor count, no left-over bytes, values checked while they are decoded.
//!
//! | link | ends | carries |
//! |---|---|---|
//! | [`link::monitor_worker`] | monitor, worker | set-up, passive sockets, connect-back, grants, log |
//! | [`link::monitor_authd`] | monitor, authd | set-up, user table, worker links; grants, log |
//! | [`link::worker_authd`] | worker, authd | password checks and verdicts |
//! | [`link::worker_keys`] | worker, authd | signatures of TLS handshakes |
//! | [`link::monitor_broker`] | monitor, broker | set-up, worker links; log |
//! | [`link::worker_broker`] | worker, broker | one record a file operation |
//! | [`link::monitor_config`] | monitor, caisson-config | two files; the configuration, or what is wrong with it |
//! | [`link::control`] | caissonctl, monitor | the admin's questions (`/run/caisson/control.sock`) |
//!
//! Not here: who may say what when (monitor/src/table.rs), and what a path means (monitor/broker/src/resolve.rs).
#![forbid(unsafe_code)]

pub mod call;
pub mod channel;
pub mod link;
pub mod peer;
pub mod table;
pub mod types;
pub mod wire;

pub use call::Record;
pub use channel::{Channel, MAX_FDS, Received, RecvError, SendError};
pub use peer::Peer;
pub use wire::Breach;
