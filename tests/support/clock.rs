//! Waiting for something to become true, with a deadline: the only way tests here let time pass.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
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

/// A test that takes longer hangs. The longest has to wait for ten seconds by what it tests.
const HANGS_AFTER: Duration = Duration::from_secs(120);

static RUNNING: Mutex<Option<HashMap<String, Instant>>> = Mutex::new(None);

/// Runs a test under the eye of [`watch`].
pub fn watched<T>(name: &str, test: impl FnOnce() -> T) -> T {
    struct Gone<'a>(&'a str);
    impl Drop for Gone<'_> {
        fn drop(&mut self) {
            let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
            running.get_or_insert_default().remove(self.0);
        }
    }
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running
        .get_or_insert_default()
        .insert(name.to_owned(), Instant::now());
    drop(running);
    let _gone = Gone(name);
    test()
}

/// Ends the whole run, with the name of the test, when one hangs: silence until somebody else's limit
/// would name nobody.
pub fn watch() {
    // As many edits as somebody asked for take as long as they take.
    if std::env::var_os("PILLION_EDITS").is_some() {
        return;
    }
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
            let hung = running
                .iter()
                .flatten()
                .find(|(_, since)| since.elapsed() > HANGS_AFTER);
            if let Some((name, _)) = hung {
                eprintln!("{name} hangs: it runs for more than {} s", HANGS_AFTER.as_secs());
                std::process::exit(101);
            }
        }
    });
}
