//! The pinned suite: installing it, reading its requirement sets, running one scenario, reading its checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Outcome, Verdict, driver};
use crate::install;

/// The requirement sets, which are revisions of the specification.
pub const SETS: [&str; 3] = ["2025-11-25", "2026-07-28", BEYOND];

/// Scenarios of the suite that are in no set.
const BEYOND: &str = "beyond";

const IN_NO_SET: [&str; 2] = [
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
];

/// Where the suite itself lets the client end with an error: the server is one to be refused.
const MAY_FAIL: [&str; 8] = [
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "http-invalid-tool-headers",
];

pub struct Suite {
    folder: PathBuf,
}

impl Suite {
    /// The suite demands Node 22, which therefore comes with it from npm.
    pub fn install() -> Result<Suite> {
        let folder = install::npm(&install::root().join("tests/conformance"), "conformance")?;
        Ok(Suite { folder })
    }

    fn package(&self) -> PathBuf {
        self.folder.join("node_modules/@modelcontextprotocol/conformance")
    }

    /// The client scenarios of a set: those that are scored, then those that are run without a score.
    ///
    /// The files are YAML of one fixed shape, `section:` and `- item` lines, so no YAML reader is needed.
    pub fn client_scenarios(&self, set: &str) -> Result<Vec<String>> {
        if set == BEYOND {
            return Ok(IN_NO_SET.map(str::to_owned).to_vec());
        }
        let path = self.package().join(format!("requirements/{set}.yaml"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut scenarios = Vec::new();
        let mut section = "";
        let mut candidate = None;
        for line in text.lines() {
            if let Some(name) = line
                .strip_suffix(':')
                .filter(|name| !name.starts_with([' ', '#']))
            {
                section = name;
            } else if let Some(item) = line.strip_prefix("  - ") {
                candidate = item.strip_prefix("scenario: ");
                if section == "client" {
                    scenarios.push(item.trim().to_owned());
                }
            } else if section == "not_scored" && line.trim() == "leg: client" {
                scenarios.extend(candidate.take().map(|name| name.trim().to_owned()));
            }
        }
        anyhow::ensure!(
            !scenarios.is_empty(),
            "{} lists no client scenario",
            path.display()
        );
        Ok(scenarios)
    }

    pub fn run(&self, set: &str, scenario: &str, pillion: &Path) -> Result<Outcome> {
        let runs = install::target().canonicalize()?.join("conformance-runs");
        let folder = runs.join(format!("{set}-{}", scenario.replace('/', "-")));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let command = format!("{} conformance-driver", std::env::current_exe()?.display());
        let output = Command::new(self.folder.join("node_modules/.bin/node"))
            .arg(self.package().join("dist/index.js"))
            // `--force`: extensions are on no revision's time line, but are run on the wires of both.
            .args(["client", "--force", "--scenario", scenario, "--command", &command])
            .args(
                (set != BEYOND)
                    .then_some(["--spec-version", set])
                    .into_iter()
                    .flatten(),
            )
            .arg("--output-dir")
            .arg(folder.join("results"))
            .env(driver::BINARY, pillion)
            .env(driver::RUN, &folder)
            .current_dir(&folder)
            .output()
            .context("cannot run the suite's node")?;
        std::fs::write(folder.join("suite.txt"), [output.stdout, output.stderr].concat())?;
        let ended =
            std::fs::read_to_string(folder.join(driver::REPORT)).unwrap_or_else(|_| "did not end".to_owned());
        let checks = find(&folder.join("results"), "checks.json");
        let checks: Option<Vec<Value>> = match checks {
            Some(path) => Some(serde_json::from_slice(&std::fs::read(path)?)?),
            None => None,
        };
        Ok(judge(
            checks.as_deref(),
            ended.trim(),
            MAY_FAIL.contains(&scenario),
        ))
    }
}

fn judge(checks: Option<&[Value]>, ended: &str, may_fail: bool) -> Outcome {
    let count = |status: &str| {
        checks
            .unwrap_or_default()
            .iter()
            .filter(|check| check["status"] == status)
            .count()
    };
    let bad = |check: &&Value| check["status"] == "FAILURE" || check["status"] == "WARNING";
    let mut notes: Vec<String> = checks
        .unwrap_or_default()
        .iter()
        .filter(bad)
        .map(|check| {
            let why = check["errorMessage"].as_str().unwrap_or_default();
            format!("{} {why}", check["id"].as_str().unwrap_or_default())
        })
        .collect();
    let verdict = if checks.is_none() {
        Verdict::None
    } else if !notes.is_empty() {
        Verdict::Fail
    } else if ended != driver::SUCCESS && !may_fail {
        Verdict::Exit
    } else if count("SUCCESS") == 0 {
        Verdict::Skip
    } else {
        Verdict::Ok
    };
    if ended != driver::SUCCESS {
        notes.push(format!("client: {ended}"));
    }
    let failed = count("FAILURE") + count("WARNING");
    Outcome {
        verdict,
        succeeded: count("SUCCESS"),
        failed,
        skipped: count("SKIPPED"),
        notes,
    }
}

/// The suite puts its files into a folder whose name holds the time.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find(&path, name) {
                return Some(found);
            }
        } else if entry.file_name() == name {
            return Some(path);
        }
    }
    None
}
