//! `cargo xtask conformance`: the official MCP conformance suite as a peer test.
//!
//! The scenarios of both requirement sets run one by one, each on the wire of its set, each in a fresh home.
//! The suite's own run of a whole set starts everything at once and ignores exit codes; here the client must end
//! with success, too, unless the scenario is about a server that must be refused.

mod driver;
mod suite;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

pub use driver::drive;
use suite::Suite;

use crate::install;

#[derive(clap::Args)]
pub struct Arguments {
    /// Only scenarios whose name contains this
    #[arg(long)]
    scenario: Option<String>,
    /// Only one requirement set
    #[arg(long, value_parser = suite::SETS)]
    set: Option<String>,
}

/// How one run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every check clean, the client ended with success.
    Ok,
    /// The checks are clean, the client failed.
    Exit,
    /// Nothing was checked: every check was skipped.
    Skip,
    /// The suite has no result at all.
    None,
    /// A check failed or warned.
    Fail,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Exit => "EXIT",
            Verdict::Skip => "skip",
            Verdict::None => "none",
            Verdict::Fail => "FAIL",
        }
    }
}

/// One line of the table.
pub struct Outcome {
    pub verdict: Verdict,
    pub succeeded: usize,
    pub failed: usize,
    pub skipped: usize,
    /// What failed, for a person.
    pub notes: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let pillion = install::pillion(install::Build::Debug)?;
    let suite = Suite::install()?;
    let mut expected = expected_failures(&install::root().join("tests/conformance/expected-failures.txt"))?;
    let mut passed = 0;
    let mut surprises = Vec::new();
    println!("| set | scenario | verdict | checks | seconds |\n|---|---|---|---|---|");
    for set in suite::SETS {
        if arguments.set.as_deref().is_some_and(|only| only != set) {
            continue;
        }
        for scenario in suite.client_scenarios(set)? {
            let wanted = arguments
                .scenario
                .as_deref()
                .is_none_or(|part| scenario.contains(part));
            if !wanted {
                continue;
            }
            let started = Instant::now();
            let outcome = suite.run(set, &scenario, &pillion)?;
            println!(
                "| {set} | {scenario} | {} | {}+ {}− {}s | {:.1} |",
                outcome.verdict.word(),
                outcome.succeeded,
                outcome.failed,
                outcome.skipped,
                started.elapsed().as_secs_f64()
            );
            let listed = expected.remove(&(set.to_owned(), scenario.clone()));
            match (outcome.verdict == Verdict::Ok, listed) {
                (true, None) | (false, Some(_)) => passed += 1,
                (true, Some(reason)) => {
                    surprises.push(format!("{set} {scenario} passes but is listed: {reason}"))
                }
                (false, None) => {
                    let verdict = outcome.verdict.word();
                    surprises.push(format!(
                        "{set} {scenario} {verdict}: {}",
                        outcome.notes.join("; ")
                    ));
                }
            }
        }
    }
    println!("\nconformance: {passed} passed, {} failed", surprises.len());
    for surprise in &surprises {
        println!("  {surprise}");
    }
    if arguments.scenario.is_none() && arguments.set.is_none() {
        let gone: Vec<_> = expected.keys().collect();
        ensure!(gone.is_empty(), "listed as failing, but never run: {gone:?}");
        ensure!(passed + surprises.len() > 0, "no scenario was run");
    }
    ensure!(
        surprises.is_empty(),
        "the results differ from tests/conformance/expected-failures.txt"
    );
    Ok(())
}

/// Reads `SET SCENARIO reason` lines; `#` begins a comment.
fn expected_failures(path: &Path) -> Result<BTreeMap<(String, String), String>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut expected = BTreeMap::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut words = line.splitn(3, ' ');
        let (Some(set), Some(scenario), Some(reason)) = (words.next(), words.next(), words.next()) else {
            anyhow::bail!("{}: `{line}` is not SET SCENARIO REASON", path.display());
        };
        expected.insert((set.to_owned(), scenario.to_owned()), reason.to_owned());
    }
    Ok(expected)
}
