//! Neovim in tmux: keys go in, the screen is read as a person would, and kept as text.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::Run;
use crate::install;

/// A tmux server of its own, ended when it is dropped.
struct Screen {
    socket: String,
}

impl Screen {
    fn open(run: &Run) -> Result<Screen> {
        let screen = Screen {
            socket: format!("pillion-{}", run.marker.value()),
        };
        let mut words: Vec<String> = vec!["env".into()];
        words.extend(
            run.environment()
                .iter()
                .map(|(name, value)| format!("{name}={}", value.display())),
        );
        words.extend(run.arguments()?);
        words.push("-c".into());
        words.push("lua require('pillion').setup({ cmd = { vim.env.PILLION_BINARY, 'serve' } })".into());
        let line: Vec<String> = words
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
            .collect();
        let home = run.home.display().to_string();
        screen.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            "-c",
            &home,
            &line.join(" "),
        ])?;
        Ok(screen)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        // Its server inherits the locale of its start, and decides by it whether the terminal can show more than ASCII.
        command
            .args(["-u", "-L", &self.socket])
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX");
        let output = command.output().context("tmux is needed for this run")?;
        ensure!(
            output.status.success(),
            "tmux: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn keys(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Types a line and enters it.
    fn line(&self, text: &str) -> Result<()> {
        self.tmux(&["send-keys", "-l", text])?;
        self.keys(&["Enter"])
    }

    /// Waits until all of these are on the screen.
    fn shows(&self, texts: &[&str]) -> Result<String> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let screen = self.tmux(&["capture-pane", "-p"])?;
            if texts.iter().all(|text| screen.contains(text)) {
                return Ok(screen);
            }
            if Instant::now() > deadline {
                bail!("{texts:?} is not on the screen:\n{screen}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Gone already when Neovim was left.
        let _ = self.tmux(&["kill-server"]);
    }
}

/// Lists, starts, calls a tool that asks, answers it, and quits, on a terminal.
pub fn play(run: &Run, show: bool) -> Result<()> {
    let screen = Screen::open(run)?;
    let mut kept = Vec::new();
    let mut keep = |name: &str, text: String| -> Result<()> {
        std::fs::write(run.home.join(format!("{name}.txt")), &text)?;
        kept.push(format!("--- {name}\n{text}"));
        Ok(())
    };
    screen.shows(&["[No Name]"])?;
    screen.line(":Pillion")?;
    screen.shows(&["absent", "scripted", "stopped"])?;
    screen.line("/scripted")?;
    screen.keys(&["s"])?;
    keep("list", screen.shows(&["scripted", "ready", "4 tools"])?)?;
    screen.line(":Pillion call scripted ride")?;
    keep(
        "question",
        screen.shows(&[
            "scripted asks for input",
            "Who rides where?",
            "1: Answer",
            "2: Decline",
        ])?,
    )?;
    screen.line("1")?;
    screen.shows(&["Rider *:"])?;
    screen.line("A")?;
    keep("complaint", screen.shows(&[". Rider *: A"])?)?;
    screen.line("da")?;
    keep("choice", screen.shows(&["Seat *", "1: front", "2: pillion"])?)?;
    screen.line("2")?;
    screen.shows(&["1: yes (default)"])?;
    screen.line("1")?;
    screen.shows(&["Speed: 50"])?;
    screen.keys(&["Enter"])?;
    keep(
        "result",
        screen.shows(&["accept: helmet=True, speed=50, where='pillion', who='Ada'"])?,
    )?;
    screen.line(":qall!")?;
    let left = run.marker.gone_within(Duration::from_secs(6));
    ensure!(left.is_empty(), "left behind: {left:?}");
    if show {
        println!("{}", kept.join("\n"));
        println!(
            "kept in {}",
            install::target().join("editors-run/screen").display()
        );
    }
    Ok(())
}
