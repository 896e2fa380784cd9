//! How the demo looks: numbered steps, what was said to Pillion, what came of it. Or all of that as JSON.

use std::time::Instant;

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::output::{self, indented};
use crate::cli::terminal::{Paint, Terminal, harmless};

const INDENT: usize = 4;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    title: String,
    /// The methods and notifications a host would use.
    methods: &'static [&'static str],
    lines: Vec<String>,
    elapsed_ms: u64,
}

pub struct Stage {
    pub terminal: Terminal,
    paint: Paint,
    /// Collect for `--json` instead of printing.
    silent: bool,
    steps: Vec<Step>,
    began: Instant,
}

impl Stage {
    pub fn new(silent: bool, terminal: Terminal) -> Stage {
        Stage {
            terminal,
            paint: terminal.on_stdout(),
            silent,
            steps: Vec::new(),
            began: Instant::now(),
        }
    }

    /// Somebody can be asked, and what was printed is seen by the same person.
    pub fn asks(&self) -> bool {
        self.terminal.asks && self.terminal.stdout && !self.silent
    }

    /// Something may be drawn and cleared again.
    pub fn draws(&self) -> bool {
        self.terminal.stdout && self.terminal.stderr && !self.silent
    }

    pub fn open(&self) -> Result<(), Failure> {
        self.print(&format!(
            "{} A host in small, played by this process, with the real `pillion serve` behind it.",
            self.paint.bold("Pillion demo.")
        ))
    }

    pub fn step(&mut self, title: &str, methods: &'static [&'static str]) -> Result<(), Failure> {
        self.measure();
        let number = self.steps.len() + 1;
        self.steps.push(Step {
            title: title.to_owned(),
            methods,
            lines: Vec::new(),
            elapsed_ms: 0,
        });
        let heading = self.paint.bold(&format!("{number:2}  {title}"));
        self.print(&format!(
            "\n{heading}  {}",
            self.paint.dim(&format!("({})", methods.join(", ")))
        ))
    }

    /// A line of the current step. The text may come from a server.
    pub fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.note(text, text)
    }

    /// Two columns: a name and what there is to say about it.
    pub fn item(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        self.note(&format!("{name:16}  {text}"), &format!("{name}: {text}"))
    }

    fn note(&mut self, shown: &str, kept: &str) -> Result<(), Failure> {
        if let Some(step) = self.steps.last_mut() {
            step.lines.push(kept.to_owned());
        }
        self.print(&indented(&harmless(shown), INDENT))
    }

    pub fn close(&mut self) -> Result<(), Failure> {
        self.measure();
        if self.silent {
            return output::json(&serde_json::json!({ "steps": self.steps }));
        }
        let done = self.paint.green("Everything came out as expected");
        self.print(&format!("\n{done}; no process and no file is left."))
    }

    fn measure(&mut self) {
        let elapsed = self.began.elapsed().as_millis();
        self.began = Instant::now();
        if let Some(step) = self.steps.last_mut() {
            step.elapsed_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        }
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        if self.silent { Ok(()) } else { output::line(text) }
    }
}
