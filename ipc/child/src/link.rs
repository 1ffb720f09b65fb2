//! The links of [`ipc::link`], those between children, and what the monitor hands on packed.

pub mod places;
pub mod settings;
pub mod user_record;
pub mod worker_authd;
pub mod worker_broker;

pub use ipc::link::*;
