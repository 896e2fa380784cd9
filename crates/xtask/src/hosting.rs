//! Runs the programs of `docs/hosting.md` against the binary, and sees that the page shows them as they are.

mod client;

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::install;
use crate::processes::Marker;

#[derive(clap::Args)]
pub struct Arguments {}

/// What the scripted model of each example says in the end.
const SAID: &str = "You have these notes: ";
/// An example is short enough to be read at a glance.
const LINES: usize = 60;

pub fn run(_: &Arguments) -> Result<()> {
    let pillion = install::pillion(install::Build::Debug)?;
    let folder = install::root().join("tests/hosting");
    let page = std::fs::read_to_string(install::root().join("docs/hosting.md"))?;
    let tools = install::npm(&folder, "hosting")?;
    // TypeScript finds the types beside the file.
    let copy = tools.join("host.ts");
    std::fs::copy(folder.join("host.ts"), &copy)?;
    install::run(
        Command::new(tools.join("node_modules/.bin/tsc"))
            .args([
                "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--types", "node",
            ])
            .arg(&copy)
            .current_dir(&tools),
    )?;
    let data = install::target().join("hosting/data");
    let mut with_python = Command::new("python3");
    with_python.arg(folder.join("host.py"));
    let mut with_node = Command::new(tools.join("node_modules/node/bin/node"));
    with_node.arg(copy);
    for program in [&mut with_python, &mut with_node] {
        program.arg(&pillion).env("PILLION_HOME", &data);
    }
    let mut examples = vec![("host.py", with_python), ("host.ts", with_node)];
    examples.extend(client::programs(&pillion, &folder, &tools)?);
    let mut passed = 0;
    for (name, command) in examples {
        let text = std::fs::read_to_string(folder.join(name))?;
        ensure!(
            text.lines().count() < LINES,
            "`{name}` has grown to {LINES} lines"
        );
        ensure!(
            page.contains(text.trim_end()),
            "docs/hosting.md does not show `{name}` as it is"
        );
        drive(name, command)?;
        println!("ok {name}");
        passed += 1;
    }
    println!("hosting: {passed} passed, 0 failed");
    Ok(())
}

fn drive(name: &str, mut command: Command) -> Result<()> {
    let marker = Marker::new();
    let output = command
        .env(Marker::VARIABLE, marker.value())
        .output()
        .with_context(|| format!("`{name}` could not be run"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && said.starts_with(SAID),
        "`{name}` ended with {} and said: {said}{failed}",
        output.status
    );
    let left = marker.processes();
    ensure!(left.is_empty(), "`{name}` left behind: {left:?}");
    Ok(())
}
