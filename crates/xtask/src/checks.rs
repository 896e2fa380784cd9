//! Named checks, run one after the other and counted.

use std::time::Instant;

use anyhow::{Result, ensure};

/// Runs named checks one after the other and counts.
pub struct Checks<'a> {
    only: Option<&'a str>,
    passed: usize,
    failed: usize,
}

impl Checks<'_> {
    pub fn new(only: Option<&str>) -> Checks<'_> {
        Checks {
            only,
            passed: 0,
            failed: 0,
        }
    }

    pub fn check(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        if self.only.is_some_and(|only| !name.contains(only)) {
            return;
        }
        let started = Instant::now();
        let outcome = work();
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => {
                self.passed += 1;
                println!("ok   {name} ({seconds:.1} s)");
            }
            Err(error) => {
                self.failed += 1;
                println!("FAIL {name} ({seconds:.1} s): {error:#}");
            }
        }
    }
    /// The closing line that CI counts.
    pub fn end(self, chore: &str) -> Result<()> {
        println!("\n{chore}: {} passed, {} failed", self.passed, self.failed);
        ensure!(self.failed == 0, "something did not work");
        ensure!(self.passed > 0, "nothing was checked");
        Ok(())
    }
}
