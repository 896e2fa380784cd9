//! Programs that are asked for a secret: how they are found and what they may know.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp::StdioTarget;

use super::launch::{self, Inherit};
use crate::config::expand::Expander;
use crate::env::Env;
use crate::exchange::words::split;
use crate::limits;

/// The words of a command line; `$NAME` in it is replaced, and what only a shell could do is refused.
pub(super) fn words(env: &Env, line: &str) -> Result<Vec<String>, String> {
    let variable = |name: &str| env.variable(name);
    let mut expander = Expander::new(&variable);
    let words: Vec<String> = split(line)?.iter().map(|word| expander.text(word)).collect();
    match expander.unset().first() {
        Some(name) => Err(format!("the variable `{name}` is not set")),
        None if words.is_empty() => Err("it names no program".to_owned()),
        None => Ok(words),
    }
}

/// Runs a program without a shell, and returns what it prints. It gets Pillion's environment as a server of the same
/// file would get it, and starts in the folder of that file.
pub(super) async fn run(
    env: &Env,
    words: &[String],
    own: &[(&str, &str)],
    base: &Path,
    inherit: Inherit,
    limit: Duration,
) -> Result<Vec<u8>, String> {
    let Some((command, args)) = words.split_first() else {
        return Err("it names no program".to_owned());
    };
    let mut variables: BTreeMap<OsString, OsString> = env.variables().iter().cloned().collect();
    if inherit == Inherit::Guarded {
        launch::withhold(&mut variables, &BTreeMap::new(), &[]);
    }
    variables.extend(own.iter().map(|(name, value)| (name.into(), value.into())));
    let cwd = if base.is_dir() {
        base.to_owned()
    } else {
        PathBuf::from("/")
    };
    let command = launch::resolve(command, &cwd, env, &mut variables)
        .await
        .map_err(|error| error.message)?;
    let target = StdioTarget {
        command,
        args: args.iter().map(OsString::from).collect(),
        env: variables.into_iter().collect(),
        cwd,
        watchdog: env.watchdog(),
    };
    mcp::run_program(&target, limit, limits::SECRET_BYTES)
        .await
        .map_err(|error| error.to_string())
}
