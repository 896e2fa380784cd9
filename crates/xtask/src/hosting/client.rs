//! Generates clients of servers' tools, has the compilers of their languages judge them, and runs programs that use them.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use crate::install;

/// How `tsc` judges a program that imports files as Node does.
const STRICT: [&str; 10] = [
    "--noEmit",
    "--strict",
    "--noUnusedLocals",
    "--allowImportingTsExtensions",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--types",
    "node",
];

/// Answers with the programs that are ready to run, by name.
pub fn programs(pillion: &Path, tests: &Path, tools: &Path) -> Result<Vec<(&'static str, Command)>> {
    let folder = tools.join("client");
    let data = folder.join("data");
    std::fs::create_dir_all(&data)?;
    let servers = json!({ "servers": {
        "notes": { "command": pillion, "args": ["demo-server", "stdio"] },
        "class */ \"\"\" x": { "command": "python3", "args": [tests.join("hostile.py")] },
    } });
    std::fs::write(data.join("mcp.json"), servers.to_string())?;
    let generate = |servers: &[&str], language: &str, file: &str| {
        let mut command = Command::new(pillion);
        command
            .arg("client")
            .args(servers)
            .args(["--lang", language, "--output"]);
        install::run(
            command
                .arg(folder.join(file))
                .env("PILLION_HOME", &data)
                .current_dir(&folder),
        )
    };
    for (language, ending) in [("typescript", "ts"), ("python", "py")] {
        generate(&["notes"], language, &format!("client.{ending}"))?;
        generate(&[], language, &format!("hostile.{ending}"))?;
        let program = format!("typed.{ending}");
        std::fs::copy(tests.join(&program), folder.join(&program))?;
    }
    install::run(
        Command::new(tools.join("node_modules/.bin/tsc"))
            .args(STRICT)
            .args(["typed.ts", "hostile.ts"])
            .current_dir(&folder),
    )?;
    let python = install::pip(&tests.join("requirements.txt"), "hosting-python")?;
    install::run(
        Command::new(python.join("mypy"))
            .args(["--strict", "typed.py", "hostile.py"])
            .current_dir(&folder),
    )?;
    // Both files must also load: no name of a stranger stands where it does something.
    for (program, file) in [
        (python.join("python3"), "hostile.py"),
        (tools.join("node_modules/node/bin/node"), "hostile.ts"),
    ] {
        install::run(Command::new(program).arg(file).current_dir(&folder))?;
    }
    let mut with_node = Command::new(tools.join("node_modules/node/bin/node"));
    with_node.arg(folder.join("typed.ts"));
    let mut with_python = Command::new(python.join("python3"));
    with_python.arg(folder.join("typed.py"));
    for program in [&mut with_node, &mut with_python] {
        program.arg(pillion).env("PILLION_HOME", &data);
    }
    Ok(vec![("typed.ts", with_node), ("typed.py", with_python)])
}
