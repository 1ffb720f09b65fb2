//! The sending end of the monitor's link, shared by all threads.
//!
//! Not here: what the monitor says (lib.rs).

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use child_ipc::{
    link::{
        log::{Event, Level, LogRecord},
        monitor_broker::{BrokerEnd, FromBroker},
    },
    types::Blob,
};

/// The monitor, as far as one can tell it something.
#[derive(Debug)]
pub(crate) struct Monitor(Mutex<BrokerEnd>);

impl Monitor {
    /// Takes over an end that nobody receives from.
    pub(crate) fn new(link: BrokerEnd) -> Self {
        Monitor(Mutex::new(link))
    }

    /// Sends a record. When it cannot be sent the monitor is gone, and the main thread sees that at its own end.
    pub(crate) fn tell(&self, record: &FromBroker) {
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = link.send(record, &[]);
    }

    /// Logs a fault on our side.
    pub(crate) fn fault(&self, text: fmt::Arguments<'_>) {
        self.log(Level::Error, Event::Fault, text);
    }

    /// Logs one line.
    pub(crate) fn log(&self, level: Level, event: Event, text: fmt::Arguments<'_>) {
        let text = Blob::cut(text.to_string().as_bytes());
        self.tell(&FromBroker::Log(LogRecord { level, event, session: None, text }));
    }
}
