//! The links of [`ipc::link`], those between children, and what the monitor hands on packed.

pub mod places;
pub mod settings;
pub mod user_record;
pub mod worker_authd;
pub mod worker_broker;
pub mod worker_keys;

pub use ipc::link::*;

/// [`ipc::link::monitor_authd`], and its two ends.
pub mod monitor_authd {
    pub use ipc::link::monitor_authd::*;

    use crate::Channel;

    /// The monitor's end.
    pub type MonitorEnd = Channel<ToAuthd, FromAuthd>;
    /// authd's end, descriptor 0.
    pub type AuthdEnd = Channel<FromAuthd, ToAuthd>;
}

/// [`ipc::link::monitor_broker`], and its two ends.
pub mod monitor_broker {
    pub use ipc::link::monitor_broker::*;

    use crate::Channel;

    /// The monitor's end.
    pub type MonitorEnd = Channel<ToBroker, FromBroker>;
    /// The broker's end, descriptor 0.
    pub type BrokerEnd = Channel<FromBroker, ToBroker>;
}

/// [`ipc::link::monitor_config`], and its two ends.
pub mod monitor_config {
    pub use ipc::link::monitor_config::*;

    use crate::Channel;

    /// The monitor's end.
    pub type MonitorEnd = Channel<ToConfig, FromConfig>;
    /// The other end, descriptor 0.
    pub type ConfigEnd = Channel<FromConfig, ToConfig>;
}

/// [`ipc::link::monitor_worker`], and its two ends.
pub mod monitor_worker {
    pub use ipc::link::monitor_worker::*;

    use crate::Channel;

    /// The monitor's end.
    pub type MonitorEnd = Channel<ToWorker, FromWorker>;
    /// The worker's end, descriptor 0.
    pub type WorkerEnd = Channel<FromWorker, ToWorker>;
}
