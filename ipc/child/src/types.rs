//! The values of [`ipc::types`], and those that only links and settings of children carry.

mod net;
mod path;
mod permission;
mod permissions;
mod port;
mod secret;

pub use ipc::types::*;
pub use net::{HostName, Network, NoNetwork};
pub use path::{PathError, VirtPath};
pub use permission::Permission;
pub use permissions::Permissions;
pub use port::Port;
pub use secret::Secret;
