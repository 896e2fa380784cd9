//! Packages fetched once from npm and PyPI, and started with the network of both package managers cut.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Checks, Place, Target};
use crate::host::{self, Host, Setup};

pub fn all(checks: &mut Checks, binary: &Path, place: &Place) {
    checks.check(
        "packages are fetched once, locked, and start without a network",
        || fetched(binary, place),
    );
}

fn fetched(binary: &Path, place: &Place) -> Result<()> {
    let home = place.home.join("installed");
    host::write_servers(
        &home,
        json!({
            "everything": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything@2026.8.31"] },
            "time": { "command": place.python.join("uvx"), "args": ["mcp-server-time==2026.10.19"] },
        }),
    )?;
    let mut environment = Vec::new();
    // The home folder is another one; how npm reaches its registry is this machine's business.
    if let Some(settings) = std::env::home_dir()
        .map(|home| home.join(".npmrc"))
        .filter(|path| path.exists())
    {
        environment.push(("npm_config_userconfig".to_owned(), settings.display().to_string()));
    }
    let mut host = Host::open(&Setup {
        arguments: &[],
        binary,
        home: &home,
        environment: environment.clone(),
    })?;
    let locked = host.request("mcp.lock", json!({ "directory": home, "action": "write" }))?;
    for row in locked["servers"].as_array().into_iter().flatten() {
        ensure!(row["status"] == "locked", "not locked: {row}");
    }
    ensure!(
        locked["servers"].as_array().is_some_and(|rows| rows.len() == 2),
        "{locked}"
    );
    host.close()?;
    // No cache of a package manager helps: both are told to stay offline, and to look in empty folders.
    for (name, value) in [
        ("npm_config_offline", "true".to_owned()),
        ("npm_config_registry", "http://127.0.0.1:9/".to_owned()),
        ("npm_config_cache", home.join("empty-npm").display().to_string()),
        ("UV_OFFLINE", "1".to_owned()),
        ("UV_CACHE_DIR", home.join("empty-uv").display().to_string()),
    ] {
        environment.push((name.to_owned(), value));
    }
    let mut host = Host::open(&Setup {
        arguments: &[],
        binary,
        home: &home,
        environment,
    })?;
    let check = host.request("mcp.lock", json!({ "directory": home }))?;
    for row in check["servers"].as_array().into_iter().flatten() {
        ensure!(row["status"] == "locked", "drifted: {row}");
    }
    let mut target = Target {
        host: &mut host,
        home: &home,
        server: "everything",
    };
    target.started()?;
    let message = json!({ "message": "from our own folder" });
    target.says("echo", message, &["from our own folder"])?;
    target.server = "time";
    target.started()?;
    let noon = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    target.says("convert_time", noon, &["T21:00:00+09:00"])?;
    host.close()
}
