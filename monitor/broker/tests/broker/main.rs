//! The real caisson-broker as a child over real links; these tests play the monitor and the workers.
//!
//! Each scenario runs as it is started by root (for an unprivileged uid, in a root of its own) and as an ordinary user
//! starts it (a plain directory); without root only the second.
#![forbid(unsafe_code)]

mod confinement;
mod harness;
mod links;
mod listings;
mod names;
mod operations;
mod permissions;
mod wildcards;
