//! Why a command did not do what it should, as people and programs read it: the problem, its causes, `hint:`.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use protocol::ErrorKind;

use super::exit::Exit;
use super::hint;
use super::output;
use super::terminal::{Paint, harmless};

/// How much of a server's stderr is worth showing; all of it is in the JSON.
const STDERR_LINES: usize = 10;

/// What stands between a command and its success; boxed inside, since it travels in every result.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    said: Box<Said>,
}

#[derive(Debug, Default)]
struct Said {
    message: String,
    causes: Vec<String>,
    /// Text of a server's stderr.
    stderr: Vec<String>,
    hint: Option<String>,
    /// A longer text that helps, after the hint.
    note: Option<String>,
    /// The error as the protocol has it, for `--json`.
    error: Option<protocol::Error>,
    /// The result stands on stdout already: there is one document only.
    printed: bool,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        let said = Said {
            message: message.into(),
            ..Default::default()
        };
        Failure {
            exit: Exit::Failed,
            said: Box::new(said),
        }
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Usage,
            ..Failure::new(message)
        }
    }

    pub fn interrupted() -> Failure {
        Failure {
            exit: Exit::Interrupted,
            ..Failure::new("interrupted")
        }
    }

    pub fn exit(mut self, exit: Exit) -> Failure {
        self.exit = exit;
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.said.hint = Some(hint.into());
        self
    }

    pub fn cause(mut self, cause: impl Into<String>) -> Failure {
        self.said.causes.push(cause.into());
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Failure {
        self.said.note = Some(note.into());
        self
    }

    /// With `--json`, stdout has its one document.
    pub fn already_printed(mut self, printed: bool) -> Failure {
        self.said.printed = printed;
        self
    }

    /// The server that was asked for and is not known.
    pub fn unknown_server(&self) -> Option<String> {
        let error = self.said.error.as_ref()?;
        (error.kind == ErrorKind::TargetMismatch)
            .then(|| error.data.server.as_ref().map(ToString::to_string))?
    }

    /// For people, on stderr.
    pub fn text(&self, paint: Paint) -> String {
        let mut text = format!("{} {}", paint.red("error:"), harmless(&self.said.message));
        for cause in &self.said.causes {
            let _ = write!(text, "\n  caused by: {}", harmless(cause));
        }
        for line in &self.said.stderr {
            let _ = write!(text, "\n  {} {}", paint.dim("|"), harmless(line));
        }
        if let Some(hint) = &self.said.hint {
            let _ = write!(text, "\n{} {}", paint.cyan("hint:"), harmless(hint));
        }
        if let Some(note) = &self.said.note {
            let _ = write!(text, "\n{}", harmless(note));
        }
        text
    }

    /// For programs, on stdout: the protocol's error object, or the same shape for what never reached a server.
    pub fn json(&self) -> serde_json::Value {
        let error = match &self.said.error {
            Some(error) => serde_json::to_value(error).unwrap_or_default(),
            None => {
                let mut data = serde_json::json!({});
                if let Some(hint) = &self.said.hint {
                    data["hint"] = hint.as_str().into();
                }
                serde_json::json!({ "message": self.said.message, "data": data })
            }
        };
        serde_json::json!({ "error": error })
    }

    /// Says it: text to stderr, and with `--json` also the document that a program waits for on stdout.
    pub fn report(&self, paint: Paint, json: bool) {
        if json && !self.said.printed {
            // There is nobody left to tell when stdout fails too.
            let _ = output::line(&self.json().to_string());
        }
        if self.exit == Exit::Interrupted && std::io::stderr().is_terminal() {
            // What was being asked may stand there still, with the cursor before it (ECMA-48, ED).
            eprint!("\r\x1b[J");
        }
        eprintln!("{}", self.text(paint));
    }
}

impl From<protocol::Error> for Failure {
    fn from(error: protocol::Error) -> Failure {
        let data = &error.data;
        let message = &error.message;
        let mut said = Said {
            message: message.clone(),
            ..Default::default()
        };
        if let Some(mcp) = &data.mcp
            && !message.contains(&mcp.message)
        {
            said.causes
                .push(format!("the server answered {}: {}", mcp.code, mcp.message));
        }

        if let (Some(path), Some(expected)) = (&data.path, &data.expected)
            && !message.contains(expected)
            // What is wrong with an entry is said in its own words.
            && !path.starts_with("/entry")
            && !path.starts_with("/set")
        {
            said.causes.push(format!("`{path}` should be {expected}"));
        }
        if let Some(code) = data.exit_code
            && !message.contains("code")
        {
            said.causes.push(format!("the process ended with code {code}"));
        }
        if let Some(signal) = &data.signal
            && !message.contains(signal)
        {
            said.causes.push(format!("the process was ended by {signal}"));
        }
        let tail = data.stderr_tail.as_deref().unwrap_or_default();
        let lines: Vec<&str> = tail.lines().filter(|line| !line.trim().is_empty()).collect();
        // A single line often stands in the message already.
        if lines.len() > 1 || lines.iter().any(|line| !message.contains(line.trim())) {
            let last = lines.len().saturating_sub(STDERR_LINES);
            said.stderr = lines[last..].iter().map(|line| (*line).to_owned()).collect();
        }
        let server = data.server.as_deref();
        said.hint = data.hint.as_deref().map(|hint| hint::typed(hint, server));
        if matches!(error.kind, ErrorKind::NotFound | ErrorKind::TargetMismatch) {
            said.note = data
                .candidates
                .as_ref()
                .filter(|names| !names.is_empty())
                .map(|names| near(names));
        }
        let exit = Exit::of(&error.kind);
        said.error = Some(error);
        Failure {
            exit,
            said: Box::new(said),
        }
    }
}

fn near(names: &[String]) -> String {
    format!("Known names: {}", names.join(", "))
}

impl Failure {
    /// A server that did not come up is a result, not an error of the protocol.
    pub fn of(fault: &protocol::Fault, server: &str) -> Failure {
        let mut error = protocol::Error::new(fault.kind.clone(), fault.message.clone());
        error.data.hint = fault.hint.clone();
        error.data.exit_code = fault.exit_code;
        error.data.signal = fault.signal.clone();
        error.data.stderr_tail = fault.stderr_tail.clone();
        error.data.http_status = fault.http_status;
        error.data.server = Some(server.into());
        Failure::from(error)
    }
}

/// What is worth knowing although the command goes on.
pub fn warn(paint: Paint, message: &str, hint: Option<&str>) {
    let mut text = format!("{} {}", paint.yellow("warning:"), harmless(message));
    if let Some(hint) = hint {
        let _ = write!(text, "\n{} {}", paint.cyan("hint:"), harmless(hint));
    }
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Error, ErrorKind};

    #[test]
    fn the_problem_the_causes_the_hint() {
        let error = Error::new(ErrorKind::Exited, "the server `notes` did not start")
            .exit_code(3)
            .stderr_tail("first\n\nlast \x1b[31m\n")
            .hint("see `pillion logs notes`");
        let failure = Failure::from(error);
        assert_eq!(
            failure.text(Paint(false)),
            "error: the server `notes` did not start\n  caused by: the process ended with code 3\n  | first\n  \
             | last \\u{1b}[31m\nhint: see `pillion logs notes`"
        );
        assert_eq!(failure.exit, Exit::Failed);
        assert_eq!(failure.json()["error"]["data"]["kind"], "exited");
        assert_eq!(failure.json()["error"]["code"], -32055);
    }

    #[test]
    fn what_never_reached_a_server_has_the_same_shape() {
        let failure = Failure::usage("`x` is given twice").hint("once");
        let expected =
            serde_json::json!({ "error": { "message": "`x` is given twice", "data": { "hint": "once" } } });
        assert_eq!(failure.json(), expected);
        assert_eq!(failure.exit, Exit::Usage);
    }
}
