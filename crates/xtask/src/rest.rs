//! Runs a tester that is driven by `schema/openapi.json` against the plain HTTP routes of the binary.
//!
//! What it asks for becomes requests, which a person says no to all the time: else ten would be the end of it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::host::{Host, Setup, data_folder};
use crate::install;

#[derive(clap::Args)]
pub struct Arguments {
    /// Requests per route and kind of fault
    #[arg(long, default_value_t = 20)]
    examples: u32,
    /// Repeats a run
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let pillion = install::pillion(install::Build::Debug)?;
    let tools = install::pip(&install::root().join("tests/rest/requirements.txt"), "rest")?;
    let home = install::target().join("rest/run");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    let mut host = Host::open(&Setup {
        arguments: &["--listen", "127.0.0.1:0"],
        binary: &pillion,
        home: &home,
        environment: Vec::new(),
    })?;
    let peers = std::fs::read_to_string(data_folder(&home).join("peers.json"))?;
    let peers: Value = serde_json::from_str(&peers)?;
    let endpoint = Endpoint {
        address: peers["endpoints"][0]["address"].as_str().context("an address")?,
        token: peers["endpoints"][0]["tokens"]["full"]
            .as_str()
            .context("a token")?,
    };
    let directory = home.display().to_string();
    let (mut passed, mut failed) = (0, 0);
    // Once with whatever directory comes to its mind, once with the one that is open.
    for known in [None, Some(directory.as_str())] {
        let folder = home.join(if known.is_some() { "here" } else { "anywhere" });
        let report = folder.join("report.xml");
        let mut tester = test(&tools, &folder, &endpoint, known, arguments)?;
        let status = loop {
            if let Some(status) = tester.try_wait()? {
                break status;
            }
            refuse_all(&mut host, &directory)?;
            std::thread::sleep(Duration::from_millis(50));
        };
        let report = std::fs::read_to_string(&report).with_context(|| report.display().to_string())?;
        let (tests, failures) = (count(&report, "tests")?, count(&report, "failures")?);
        let failures = failures + count(&report, "errors")?;
        ensure!(status.success() || failures > 0, "the tester ended with {status}");
        passed += tests - failures;
        failed += failures;
    }
    host.close()?;
    println!("rest: {passed} passed, {failed} failed");
    ensure!(failed == 0, "the routes are not as schema/openapi.json says");
    Ok(())
}

struct Endpoint<'a> {
    address: &'a str,
    token: &'a str,
}

fn test(
    tools: &Path,
    folder: &Path,
    endpoint: &Endpoint<'_>,
    directory: Option<&str>,
    arguments: &Arguments,
) -> Result<Child> {
    std::fs::create_dir_all(folder)?;
    let mut config = std::fs::read_to_string(install::root().join("tests/rest/schemathesis.toml"))?;
    if let Some(directory) = directory {
        config = format!(
            "[parameters]\n\"query.directory\" = {}\n\n{config}",
            json!(directory)
        );
    }
    std::fs::write(folder.join("schemathesis.toml"), config)?;
    Command::new(tools.join("schemathesis"))
        .arg("run")
        .arg(install::root().join("schema/openapi.json").canonicalize()?)
        .args(["--url", &format!("http://{}", endpoint.address)])
        .args(["--header", &format!("Authorization: Bearer {}", endpoint.token)])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", &arguments.examples.to_string()])
        .args(["--seed", &arguments.seed.to_string()])
        // Rules between the members of an entry stand in no schema.
        .args(["--exclude-checks", "positive_data_acceptance"])
        // Below what the endpoint allows in a second.
        .args(["--rate-limit", "90/s"])
        .args(["--generation-database", "none", "--no-color"])
        .args(["--report-junit-path", "report.xml"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .spawn()
        .context("schemathesis")
}

/// The person says no to everything.
fn refuse_all(host: &mut Host, directory: &str) -> Result<()> {
    let pending = host.request("mcp.pending", json!({ "directory": directory }))?;
    for review in pending["reviews"].as_array().into_iter().flatten() {
        let decision = json!({
            "directory": directory, "server": review["server"], "revision": review["revision"], "decision": "reject",
        });
        // It may have been replaced by the next request meanwhile.
        drop(host.call("mcp.decide", decision)?);
    }
    Ok(())
}

/// A number of the report's first element.
fn count(report: &str, name: &str) -> Result<u64> {
    let start = format!(" {name}=\"");
    let rest = report.split_once(&start).map(|(_, rest)| rest);
    let number = rest
        .and_then(|rest| rest.split_once('"'))
        .map(|(number, _)| number);
    number
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("the report has no `{name}`"))
}
