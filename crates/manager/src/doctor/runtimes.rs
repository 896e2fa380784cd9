//! The programs that start servers: where they are, which version, and whether an editor would find the same.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use futures_util::future::join_all;

use super::code::Code;
use super::{Found, Ground, shown};
use crate::limits;
use crate::server::{launch, login_shell};

/// What most servers are started with.
const PROGRAMS: [&str; 8] = ["node", "npm", "npx", "uv", "uvx", "python3", "docker", "deno"];
/// Node.js before this has no security updates any more, and many servers do not start on it.
const OLDEST_NODE: u32 = 18;

pub(super) async fn look(ground: &Arc<Ground>) -> Vec<Found> {
    let env = &ground.core.env;
    let own = env.variable_os("PATH").unwrap_or_default();
    let login = login_shell::path(env).await;
    let needed = needed(ground);
    let mut names: Vec<&str> = PROGRAMS.to_vec();
    names.extend(needed.keys().map(String::as_str));
    names.sort_unstable();
    names.dedup();
    let looks = names.iter().map(|name| {
        let users = needed.get(*name).map(Vec::as_slice).unwrap_or_default();
        program(name, users, &own, login.as_deref())
    });
    join_all(looks).await.into_iter().flatten().collect()
}

/// The programs that enabled entries name without a path, with the names of the entries.
fn needed(ground: &Ground) -> BTreeMap<String, Vec<String>> {
    let mut needed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for server in ground.enabled() {
        let entry = server.entry();
        let Some(command) = entry.command.as_deref() else {
            continue;
        };
        let is_bare = !command.contains(['/', '\\', '$']) && !command.starts_with('~');
        if is_bare && !command.is_empty() {
            needed
                .entry(command.to_owned())
                .or_default()
                .push(server.name.to_string());
        }
    }
    needed
}

async fn program(name: &str, users: &[String], own: &OsStr, login: Option<&OsStr>) -> Vec<Found> {
    let here = launch::search(name, own);
    let there = login.and_then(|login| launch::search(name, login));
    let used_by = |found: Found| match users {
        [] => found,
        _ => found.shown_by([format!("used by {}", users.join(", "))]),
    };
    let mut found = Vec::new();
    match (&here, &there, login) {
        (None, Some(path), _) if !users.is_empty() => {
            let message = format!("`{name}` is on the login shell's PATH, and not on that of this process");
            found.push(used_by(
                Found::new(Code::PathShort, message)
                    .shown_by([shown(path)])
                    .hint("an editor that was started from the desktop has a shorter PATH: Pillion uses the shell's for these servers; start the editor from a terminal to have it everywhere"),
            ));
        }
        (Some(path), None, Some(_)) if !users.is_empty() => {
            let message = format!("`{name}` is on the PATH of this terminal, and not on the login shell's");
            found.push(used_by(
                Found::new(Code::PathTerminalOnly, message)
                    .shown_by([shown(path)])
                    .hint(format!("an editor that is started from the desktop will not find it: set PATH in ~/.profile (or ~/.zprofile), or write `{}` as the command", shown(path))),
            ));
        }
        (Some(mine), Some(other), _) if !users.is_empty() && differ(mine, other) => {
            let message = format!("`{name}` here is another one than on the login shell's PATH");
            found.push(used_by(
                Found::new(Code::PathDiffers, message)
                    .shown_by([format!("here: {}", shown(mine)), format!("login shell: {}", shown(other))])
                    .hint("an editor may start servers with another version than this terminal does; write the absolute path as the command to fix one"),
            ));
        }
        _ => {}
    }
    let Some(path) = here.or(there) else {
        // Whoever needs it says so for its entry.
        return found;
    };
    if !PROGRAMS.contains(&name) {
        return found;
    }
    match version(&path, &["--version"], login.unwrap_or(own)).await {
        Ok(version) => {
            let major = version.trim_start_matches('v').split('.').next();
            let major = major.and_then(|major| major.parse::<u32>().ok());
            if name == "node" && major.is_some_and(|major| major < OLDEST_NODE) {
                let message =
                    format!("Node.js {version} is older than {OLDEST_NODE}, which most servers need");
                found.push(
                    Found::new(Code::RuntimeOld, message)
                        .shown_by([shown(&path)])
                        .hint("install a newer Node.js"),
                );
            }
            found.push(Found::new(Code::Runtime, format!("{name} {version}")).shown_by([shown(&path)]));
        }
        Err(why) => {
            let problem = Found::new(Code::RuntimeBroken, format!("`{name}` does not run: {why}"));
            let problem = problem.shown_by([shown(&path)]);
            found.push(used_by(problem.hint(format!(
                "run `{name} --version` in a terminal, and install it again"
            ))));
        }
    }
    if name == "docker" && !users.is_empty() {
        let asked = version(&path, &["version", "--format", "{{.Server.Version}}"], own).await;
        if let Err(why) = asked {
            let message = format!("Docker's engine does not answer: {why}");
            found.push(used_by(Found::new(Code::DockerUnreachable, message).hint(
                "start Docker; on Linux, check that you are in the group `docker`",
            )));
        }
    }
    found
}

/// Links of version managers and of the system may lead to the same program.
fn differ(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    real(one) != real(other)
}

/// The version that a program says it has, or why it does not say it.
async fn version(program: &Path, args: &[&str], path: &OsStr) -> Result<String, String> {
    let mut folders: Vec<PathBuf> = program.parent().map(Path::to_owned).into_iter().collect();
    folders.extend(std::env::split_paths(path));
    // `npm` is a script of `node` beside it.
    let path = std::env::join_paths(folders).unwrap_or_else(|_| OsString::from(path));
    let mut command = tokio::process::Command::new(program);
    command
        .args(args)
        .env("PATH", path)
        // The folder Pillion runs in may be anybody's: what configures a program there counts for nothing.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let output = match tokio::time::timeout(limits::VERSION, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no answer within {} s", limits::VERSION.as_secs())),
    };
    let first = |bytes: &[u8]| -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.unwrap_or_default().chars().take(200).collect()
    };
    if !output.status.success() {
        let said = first(&output.stderr);
        return Err(match said.is_empty() {
            true => output.status.to_string(),
            false => said,
        });
    }
    let said = first(&output.stdout);
    // `uv 0.9.1 (abc 2026-01-01)`, `Python 3.12.1`, `Docker version 28.1.1, build 4eba377`
    let number = said.split([' ', ',']).find(|word| {
        word.trim_start_matches('v')
            .starts_with(|c: char| c.is_ascii_digit())
    });
    match number {
        Some(number) => Ok(number.trim_start_matches('v').to_owned()),
        None if said.is_empty() => Err("it says no version".to_owned()),
        None => Ok(said),
    }
}
