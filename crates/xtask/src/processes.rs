//! Finding what a run left behind: every process it started carries a variable that names the run.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The name of one run, inherited by every descendant through its environment.
#[derive(Clone)]
pub struct Marker(String);

impl Marker {
    pub const VARIABLE: &str = "PILLION_XTASK_RUN";

    pub fn new() -> Marker {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Marker(format!("{}-{count}", std::process::id()))
    }

    pub fn value(&self) -> &str {
        &self.0
    }

    /// The processes of this run that live, as `pid command line`.
    pub fn processes(&self) -> Vec<String> {
        let wanted = format!("{}={}", Marker::VARIABLE, self.0);
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| {
                let environment = std::fs::read(entry.path().join("environ")).ok()?;
                environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == wanted.as_bytes())
                    .then(|| {
                        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                        let line = String::from_utf8_lossy(&line).replace('\0', " ");
                        format!("{} {}", entry.file_name().to_string_lossy(), line.trim_end())
                    })
            })
            .collect()
    }

    /// Waits until none lives any more; what still does at the end of the time is the answer.
    pub fn gone_within(&self, limit: Duration) -> Vec<String> {
        let deadline = Instant::now() + limit;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() >= deadline {
                return left;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
