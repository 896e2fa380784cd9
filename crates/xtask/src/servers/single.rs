//! Servers that are good at one thing: each starts and does it.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Place, Target, page};
use crate::checks::Checks;
use crate::host::{self, Host, Setup};
use crate::install;

/// What is tried with one server.
type Work = fn(&mut Target) -> Result<()>;

pub fn all(checks: &mut Checks, binary: &Path, place: &Place) {
    let mut host = None;
    checks.check("npm and PyPI servers are configured", || {
        host = Some(open(binary, place)?);
        Ok(())
    });
    let Some(mut host) = host else { return };
    let home = place.home.join("single");
    let works: [(&str, Work); 6] = [
        ("filesystem", filesystem),
        ("memory", memory),
        ("thinking", thinking),
        ("git", git),
        ("time", time),
        ("fetch", fetch),
    ];
    for (server, work) in works {
        checks.check(server, || {
            let mut target = Target {
                host: &mut host,
                home: &home,
                server,
            };
            target.started()?;
            let page = target.request("mcp.tools.list", json!({}))?;
            ensure!(
                !page["items"].as_array().is_none_or(Vec::is_empty),
                "no tools: {page}"
            );
            work(&mut target)
        });
    }
    checks.check("npm and PyPI servers end with pillion", || host.close());
}

fn open(binary: &Path, place: &Place) -> Result<Host> {
    let home = place.home.join("single");
    std::fs::create_dir_all(&home)?;
    std::fs::write(home.join("note.txt"), "A note with an umlaut: ü\n")?;
    repository(&home.join("repository"))?;
    let npm = |name: &str| json!(place.npm.join("node_modules/.bin").join(name));
    let python = |name: &str| json!(place.python.join(name));
    host::write_servers(
        &home,
        json!({
            "filesystem": { "command": npm("mcp-server-filesystem"), "args": [home] },
            "memory": { "command": npm("mcp-server-memory"), "env": { "MEMORY_FILE_PATH": home.join("memory.jsonl") } },
            "thinking": { "command": npm("mcp-server-sequential-thinking") },
            "git": { "command": python("mcp-server-git"), "args": ["--repository", home.join("repository")] },
            "time": { "command": python("mcp-server-time") },
            // The page to fetch is on loopback, which the server refuses otherwise.
            "fetch": { "command": python("mcp-server-fetch"), "args": ["--allow-private-ips"] },
        }),
    )?;
    Host::open(&Setup {
        arguments: &[],
        binary,
        home: &home,
        environment: Vec::new(),
    })
}

fn repository(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("seat.txt"), "behind the rider\n")?;
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    for args in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["commit", "--quiet", "--message", "A seat"],
    ] {
        install::run(Command::new("git").args(who).args(args).current_dir(folder))?;
    }
    std::fs::write(folder.join("helmet.txt"), "for the passenger\n")?;
    Ok(())
}

fn filesystem(target: &mut Target) -> Result<()> {
    let note = target.home.join("note.txt");
    target.says(
        "read_text_file",
        json!({ "path": note }),
        &["A note with an umlaut: ü"],
    )?;
    let written = target.home.join("written.txt");
    target.tool(
        "write_file",
        json!({ "path": written, "content": "through pillion\n" }),
    )?;
    ensure!(
        std::fs::read_to_string(&written)? == "through pillion\n",
        "another text was written"
    );
    let outside = json!({ "name": "read_text_file", "arguments": { "path": "/etc/hostname" } });
    let refused = target.request("mcp.tool.call", outside)?;
    ensure!(
        refused["result"]["isError"] == true,
        "a file outside the roots was read: {refused}"
    );
    Ok(())
}

fn memory(target: &mut Target) -> Result<()> {
    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["rides pillion"] });
    target.tool("create_entities", json!({ "entities": [ada] }))?;
    target.says(
        "search_nodes",
        json!({ "query": "pillion" }),
        &["Ada", "rides pillion"],
    )?;
    let read = target.request("mcp.resource.read", json!({ "uri": "memory://knowledge-graph" }))?;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_default();
    ensure!(
        text.contains("rides pillion"),
        "the resource does not have it: {read}"
    );
    Ok(())
}

fn thinking(target: &mut Target) -> Result<()> {
    let thought = json!({ "thought": "Who steers?", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 });
    target.says(
        "sequentialthinking",
        thought,
        &["\"thoughtNumber\": 1", "\"nextThoughtNeeded\": false"],
    )
}

fn git(target: &mut Target) -> Result<()> {
    let repository = json!({ "repo_path": target.home.join("repository") });
    target.says(
        "git_status",
        repository.clone(),
        &["Untracked files", "helmet.txt"],
    )?;
    target.says("git_log", repository, &["A seat", "Ada"])
}

fn time(target: &mut Target) -> Result<()> {
    let noon = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    target.says("convert_time", noon, &["T21:00:00+09:00", "+9.0h"])
}

fn fetch(target: &mut Target) -> Result<()> {
    let url = page::serve()?;
    target.says(
        "fetch",
        json!({ "url": url }),
        &["The pillion seat is behind the rider."],
    )?;
    let prompt = target.request(
        "mcp.prompt.get",
        json!({ "name": "fetch", "args": { "url": url } }),
    )?;
    let message: &Value = &prompt["result"]["messages"][0]["content"]["text"];
    ensure!(
        message.as_str().unwrap_or_default().contains("does not steer"),
        "{prompt}"
    );
    Ok(())
}
