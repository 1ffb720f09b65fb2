//! The worker between its neighbours: this program plays monitor, authd and brokers against the real `caisson-worker`,
//! over real links, and clients over real sockets. What the whole daemon does is tested in tests/ at the top.

#[path = "links/authd.rs"]
mod authd;
#[path = "links/brokers.rs"]
mod brokers;
#[path = "links/certified.rs"]
mod certified;
#[path = "links/harness.rs"]
mod harness;
#[path = "links/keys.rs"]
mod keys;
#[path = "links/monitor.rs"]
mod monitor;
#[path = "links/policy.rs"]
mod policy;
#[path = "links/secured.rs"]
mod secured;
#[path = "links/secured_control.rs"]
mod secured_control;
#[path = "../../tests/src/skip.rs"]
mod skip;
