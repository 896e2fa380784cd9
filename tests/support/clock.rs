//! Waiting for something to become true, with a deadline: the only way tests here let time pass.

use std::time::{Duration, Instant};

/// How long anything may take before a test calls it hung. Generous, since machines are shared.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Asks again until there is an answer. `None` when the deadline passed.
pub fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

/// As [`poll`] with the usual patience; panics with `what` when it never came.
#[track_caller]
pub fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    match poll(PATIENCE, probe) {
        Some(found) => found,
        None => panic!("waited {} s in vain for {what}", PATIENCE.as_secs()),
    }
}
