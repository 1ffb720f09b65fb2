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
//! | [`link::monitor_broker`] | monitor, broker | set-up, worker links; log |
//! | [`link::monitor_config`] | monitor, caisson-config | two files; the configuration, or what is wrong with it |
//! | [`link::control`] | caissonctl, monitor | the admin's questions (`/run/caisson/control.sock`) |
//!
//! All of it runs as root, and is counted by monitor/tests/tcb.rs.
//! Not here: links that root has no end of, and what it hands on unread (ipc/child); who may say what when (monitor/src/table.rs).
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
