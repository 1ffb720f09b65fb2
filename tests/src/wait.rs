//! The only way scenarios wait: for a condition, for so long at most.

use std::time::{Duration, Instant};

/// How long a condition may take on a slow, busy machine before the scenario has failed.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Probes until there is a value. Panics, naming `what`, when there is none after [`LIMIT`].
pub fn until<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    match within(LIMIT, probe) {
        Some(value) => value,
        None => panic!("waited {LIMIT:?} in vain until {what}"),
    }
}

/// Probes until there is a value, for `limit` at most.
pub fn within<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        // The last probe comes after the deadline, so a scenario that was not scheduled for long is not failed by it.
        let over = began.elapsed() >= limit;
        if let Some(value) = probe() {
            return Some(value);
        }
        if over {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
