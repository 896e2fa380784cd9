//! Runs a package manager: bounded in time, ended with everything it started, its last line told as progress.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use mcp::StdioTarget;
use protocol::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::failed;
use crate::limits;

/// Ends a process and its group when it is dropped.
struct Group(Option<i32>);

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.0.and_then(rustix::process::Pid::from_raw) {
            // It may have ended in the meantime.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Runs a program in the environment of `tools` to its end; answers what it wrote to stdout.
pub(super) async fn run(
    program: &Path,
    args: &[&OsStr],
    tools: &StdioTarget,
    folder: &Path,
    stdin: &str,
    say: &(dyn Fn(&str) + Sync),
) -> Result<String, Error> {
    let name = program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut command = tokio::process::Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(tools.env.iter().cloned())
        .env("NO_COLOR", "1")
        .env("CI", "1")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let broken = |error: std::io::Error| failed(format!("`{name}` could not be run: {error}"));
    let mut child = command.spawn().map_err(broken)?;
    let group = Group(child.id().and_then(|pid| i32::try_from(pid).ok()));
    let (mut input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut pipe) = input.take() {
            // Who reads nothing needs nothing.
            let _ = pipe.write_all(stdin.as_bytes()).await;
        }
    };
    let read = async {
        let mut text = Vec::new();
        if let Some(output) = output {
            output
                .take(limits::MANAGER_OUTPUT_BYTES)
                .read_to_end(&mut text)
                .await?;
        }
        Ok::<_, std::io::Error>(text)
    };
    let listen = async {
        let mut last: Vec<String> = Vec::new();
        let Some(errors) = errors else { return last };
        let mut lines = BufReader::new(errors.take(limits::MANAGER_OUTPUT_BYTES)).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let line: String = String::from_utf8_lossy(&line).trim().chars().take(300).collect();
            if line.is_empty() {
                continue;
            }
            // Addresses of registries may hold credentials: only words without one are told.
            if !line.contains("://") {
                say(&line);
            }
            if last.len() == limits::EVIDENCE_LINES * 2 {
                last.remove(0);
            }
            last.push(line);
        }
        last
    };
    let all = async { tokio::join!(write, read, listen, child.wait()) };
    let Ok(((), text, last, status)) = tokio::time::timeout(limits::PREFETCH, all).await else {
        return Err(failed(format!(
            "`{name}` did not end within {} s",
            limits::PREFETCH.as_secs()
        )));
    };
    drop(group);
    let status = status.map_err(broken)?;
    if !status.success() {
        let said: Vec<&str> = last
            .iter()
            .map(String::as_str)
            .filter(|line| !line.contains("://"))
            .collect();
        let first = said
            .iter()
            .find(|line| line.to_lowercase().contains("error"))
            .or(said.last());
        let why = first.map(|line| format!(": {line}")).unwrap_or_default();
        return Err(failed(format!("`{name}` ended with {status}{why}"))
            .stderr_tail(said.join("\n"))
            .hint("check the name of the package, the network, and proxy settings"));
    }
    Ok(String::from_utf8_lossy(&text.map_err(broken)?).into_owned())
}
