//! TLS of control and data connections.

pub mod keys;
