//! `cargo xtask bench`: builds what is measured and runs the harness of `tests/bench`.
//!
//! Speed is never judged by `cargo test`, since a busy machine would make it fail.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::install;

#[derive(clap::Args)]
pub struct Arguments {
    /// Rounds; ratios are medians over them
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// One short round, to see that everything works
    #[arg(long)]
    quick: bool,
    /// Measure other programs from npm, too
    #[arg(long)]
    rivals: bool,
    /// Measure the search for tools instead: tokens, and whether the right tool is found
    #[arg(long)]
    tools: bool,
    /// Write the page, such as docs/performance.md, or docs/tool-search.md with --tools
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Keep the raw figures
    #[arg(long)]
    json: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.tools {
        return tools(arguments);
    }
    let pillion = install::pillion(install::Build::Dist)?;
    let folder = install::root().join("tests/bench");
    let target = install::target().join("bench");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--locked", "--release", "--manifest-path"])
        .arg(folder.join("Cargo.toml"));
    install::run(build.env("CARGO_TARGET_DIR", &target))?;

    let mut command = Command::new("python3");
    command.arg("-B").arg(folder.join("bench.py"));
    command.arg("--pillion").arg(pillion);
    command
        .arg("--material")
        .arg(target.canonicalize()?.join("release"));
    if arguments.rivals {
        command
            .arg("--rivals")
            .arg(install::npm(&folder.join("rivals"), "bench-rivals")?);
    }
    if arguments.quick {
        command.args(["--rounds", "1", "--calls", "200", "--idle", "1"]);
    } else {
        command.arg("--rounds").arg(arguments.rounds.to_string());
    }
    for (option, path) in [("--json", &arguments.json), ("--markdown", &arguments.markdown)] {
        if let Some(path) = path {
            command.arg(option).arg(path);
        }
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    command
        .arg("--command")
        .arg(format!("cargo xtask {}", words.join(" ")));
    let status = command.status().context("python3 is needed for this run")?;
    ensure!(status.success(), "a target was missed or could not be measured");
    Ok(())
}

/// Figures that do not depend on speed, so any build will do.
fn tools(arguments: &Arguments) -> Result<()> {
    let mut command = Command::new("python3");
    command
        .arg("-B")
        .arg(install::root().join("tests/bench/tools/bench.py"))
        .arg("--pillion")
        .arg(install::pillion(install::Build::Debug)?);
    if let Some(path) = &arguments.markdown {
        command.arg("--markdown").arg(path);
    }
    let status = command.status().context("python3 is needed for this run")?;
    ensure!(status.success(), "the search finds less than it should");
    Ok(())
}
