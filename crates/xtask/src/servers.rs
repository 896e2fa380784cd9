//! `cargo xtask servers`: real MCP servers from npm and PyPI, driven through `pillion serve`.
//!
//! Each starts, lists and does one thing that shows it works; `everything` does what the protocol has, over all
//! three transports. At the end Pillion is killed outright, and what `npx` started must be gone.

mod everything;
mod installed;
mod page;
mod single;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::checks::Checks;
use crate::host::{self, Host, Setup};
use crate::install;

#[derive(clap::Args)]
pub struct Arguments {
    /// Only checks whose name contains this
    #[arg(long)]
    only: Option<String>,
}

/// Where the servers are, and a folder for what they work on.
pub struct Place {
    pub npm: PathBuf,
    pub python: PathBuf,
    pub home: PathBuf,
}

/// One server, as the checks address it.
pub struct Target<'a> {
    pub host: &'a mut Host,
    pub home: &'a Path,
    pub server: &'a str,
}

impl Target<'_> {
    pub fn params(&self, members: Value) -> Value {
        let mut params = json!({ "directory": self.home, "server": self.server });
        for (name, value) in members.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        params
    }

    pub fn request(&mut self, method: &str, members: Value) -> Result<Value> {
        let params = self.params(members);
        self.host.request(method, params)
    }

    /// Calls a tool and answers its result, which must not be an error.
    pub fn tool(&mut self, name: &str, arguments: Value) -> Result<Value> {
        let answer = self.request("mcp.tool.call", json!({ "name": name, "arguments": arguments }))?;
        let result = answer["result"].clone();
        ensure!(result["isError"] != true, "{name}: {result}");
        Ok(result)
    }

    /// Calls a tool whose text must contain the words.
    pub fn says(&mut self, name: &str, arguments: Value, words: &[&str]) -> Result<()> {
        let result = self.tool(name, arguments)?;
        contains(&result, words)
    }

    pub fn started(&mut self) -> Result<Value> {
        let answer = self.request("mcp.start", json!({}))?;
        ensure!(answer["server"]["state"] == "ready", "not ready: {answer}");
        Ok(answer["server"].clone())
    }
}

/// The texts of a result's content, joined, contain all the words.
pub fn contains(result: &Value, words: &[&str]) -> Result<()> {
    let blocks = result["content"].as_array().into_iter().flatten();
    let text: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    let text = text.join("\n");
    for word in words {
        ensure!(text.contains(word), "`{word}` is not in: {text}");
    }
    Ok(())
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let binary = install::pillion(install::Build::Debug)?;
    let npm = install::npm(&install::root().join("tests/servers"), "servers-npm")?;
    let python = install::pip(
        &install::root().join("tests/servers/requirements.txt"),
        "servers-python",
    )?;
    let home = install::target().canonicalize()?.join("servers-run");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    std::fs::create_dir_all(&home)?;
    let place = Place { npm, python, home };
    let mut checks = Checks::new(arguments.only.as_deref());

    everything::all_transports(&mut checks, &binary, &place);
    single::all(&mut checks, &binary, &place);
    installed::all(&mut checks, &binary, &place);
    checks.check("SIGKILL of pillion leaves no server behind", || {
        killed(&binary, &place)
    });
    checks.end("servers")
}

/// Four servers behind `npx`, which is two processes each and a shell between them.
fn killed(binary: &Path, place: &Place) -> Result<()> {
    let home = place.home.join("killed");
    let npx = |name: &str, args: &[&str]| {
        let args: Vec<&str> = ["--no", "--", name]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        json!({ "command": "npx", "args": args, "cwd": place.npm })
    };
    let folder = home.display().to_string();
    let servers = json!({
        "everything": npx("mcp-server-everything", &[]),
        "files": npx("mcp-server-filesystem", &[&folder]),
        "memory": npx("mcp-server-memory", &[]),
        "thinking": npx("mcp-server-sequential-thinking", &[]),
    });
    let names: Vec<String> = servers
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    host::write_servers(&home, servers)?;
    let mut host = Host::open(&Setup {
        arguments: &[],
        binary,
        home: &home,
        environment: Vec::new(),
    })?;
    for name in &names {
        Target {
            host: &mut host,
            home: &home,
            server: name,
        }
        .started()?;
    }
    let running = host.marker().processes();
    ensure!(
        running.len() > 2 * names.len(),
        "too few processes to prove anything: {running:?}"
    );
    let left = host.kill()?.gone_within(Duration::from_secs(1));
    ensure!(left.is_empty(), "left after one second: {left:?}");
    Ok(())
}
