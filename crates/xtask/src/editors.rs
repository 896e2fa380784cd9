//! `cargo xtask editors`: the editor clients in real editors against the real binary.
//!
//! Neovim comes from PyPI. It is driven without a screen, on a real terminal through tmux with what it showed kept as
//! text, and it is left in every way an editor is left, after which nothing may be running.

mod screen;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::host::{data_folder, write_servers};
use crate::install;
use crate::processes::Marker;

#[derive(clap::Args)]
pub struct Arguments {
    /// Show what was on the screen
    #[arg(long)]
    show: bool,
}

/// What an editor run needs: the editor, the binary, a home of its own, and a name to find leftovers by.
pub struct Run {
    neovim: PathBuf,
    binary: PathBuf,
    home: PathBuf,
    pub marker: Marker,
}

impl Run {
    fn new(neovim: &Path, binary: &Path, name: &str) -> Result<Run> {
        let home = install::target().canonicalize()?.join("editors-run").join(name);
        if home.exists() {
            std::fs::remove_dir_all(&home)?;
        }
        std::fs::create_dir_all(&home)?;
        let script = install::root()
            .join("tests/editors/scripted_server.py")
            .canonicalize()?;
        write_servers(
            &home,
            json!({
                "scripted": { "command": "python3", "args": [script] },
                "absent": { "command": "no-such-program-anywhere" },
            }),
        )?;
        Ok(Run {
            neovim: neovim.to_owned(),
            binary: binary.to_owned(),
            home,
            marker: Marker::new(),
        })
    }

    /// The variables of the run, for an editor started here or by tmux.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HOME", self.home.clone()),
            ("PILLION_HOME", data_folder(&self.home)),
            ("XDG_CONFIG_HOME", self.home.join("config")),
            ("XDG_DATA_HOME", self.home.join("data")),
            ("XDG_STATE_HOME", self.home.join("state")),
            ("XDG_CACHE_HOME", self.home.join("cache")),
            ("PILLION_BINARY", self.binary.clone()),
            (Marker::VARIABLE, self.marker.value().into()),
        ]
    }

    /// Neovim with nothing but our plugin.
    pub fn arguments(&self) -> Result<Vec<String>> {
        let plugin = install::root().join("editors/nvim").canonicalize()?;
        let path = format!("set runtimepath^={}", plugin.display());
        Ok(vec![
            self.neovim.display().to_string(),
            "--clean".into(),
            "--cmd".into(),
            path,
        ])
    }

    fn headless(&self) -> Result<Command> {
        let arguments = self.arguments()?;
        let mut command = Command::new(&arguments[0]);
        command
            .args(&arguments[1..])
            .arg("--headless")
            .current_dir(&self.home)
            .stdin(Stdio::null());
        command.envs(self.environment());
        Ok(command)
    }

    fn nothing_left(&self) -> Result<()> {
        let left = self.marker.gone_within(Duration::from_secs(1));
        ensure!(left.is_empty(), "left behind: {left:?}");
        Ok(())
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let binary = install::pillion(install::Build::Debug)?;
    let bin = install::pip(
        &install::root().join("tests/editors/requirements.txt"),
        "editors-neovim",
    )?;
    let neovim = bin.join("nvim");
    let help = Run::new(&neovim, &binary, "help")?;
    // Duplicate or broken tags are an error of this command.
    install::run(
        help.headless()?
            .arg("-c")
            .arg(format!("helptags {}", tags(&help)?.display()))
            .args(["-c", "qa!"]),
    )?;

    let mut failed = 0;
    let mut check = |name: &str, outcome: Result<()>| match outcome {
        Ok(()) => println!("ok   {name}"),
        Err(error) => {
            failed += 1;
            println!("FAIL {name}: {error:#}");
        }
    };
    check(
        "neovim plays through without a screen",
        play(&Run::new(&neovim, &binary, "play")?),
    );
    for (way, command) in [
        (":qall", "qall!"),
        ("kill -9", "call system('kill -9 ' . getpid())"),
    ] {
        let name = way.trim_start_matches(':').replace(' ', "");
        let run = Run::new(&neovim, &binary, &name)?;
        check(
            &format!("neovim left by {way} leaves nothing behind"),
            left(&run, command),
        );
    }
    let run = Run::new(&neovim, &binary, "screen")?;
    check(
        "neovim on a terminal",
        screen::play(&run, arguments.show).and_then(|()| run.nothing_left()),
    );
    println!("\neditors: {} passed, {failed} failed", 4 - failed);
    ensure!(failed == 0, "the editor runs failed");
    Ok(())
}

/// A copy of the help, so that its tags file does not land in the source.
fn tags(run: &Run) -> Result<PathBuf> {
    let folder = run.home.join("doc");
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(
        install::root().join("editors/nvim/doc/pillion.txt"),
        folder.join("pillion.txt"),
    )?;
    Ok(folder)
}

fn play(run: &Run) -> Result<()> {
    let script = install::root().join("tests/editors/nvim.lua").canonicalize()?;
    let status = run.headless()?.arg("-l").arg(script).status().context("neovim")?;
    ensure!(status.success(), "neovim ended with {status}");
    run.nothing_left()
}

/// Starts a server and leaves at once, while it runs.
fn left(run: &Run, command: &str) -> Result<()> {
    let script = "lua require('pillion').setup({ cmd = { vim.env.PILLION_BINARY, 'serve' } }) \
         vim.cmd('Pillion start scripted') \
         local ready = function() return require('pillion').status():find('1/', 1, true) end \
         assert(vim.wait(20000, ready), 'not ready') vim.fn.writefile({}, 'ready')";
    let mut neovim = run.headless()?;
    let output = neovim
        .args(["-c", script, "-c", command])
        .output()
        .context("neovim")?;
    let said = String::from_utf8_lossy(&output.stderr);
    // Without the file nothing ran that could have been left.
    ensure!(
        run.home.join("ready").exists(),
        "the server did not start: {said}"
    );
    // Killed is what was ordered; else Neovim has to end well.
    let killed = command.contains("kill");
    ensure!(
        output.status.success() || killed,
        "neovim ended with {}: {said}",
        output.status
    );
    run.nothing_left()
}
