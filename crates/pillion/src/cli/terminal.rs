//! What the command line may do with the terminal: colours, prompts, and text that did not come from us.

use std::borrow::Cow;
use std::io::IsTerminal;

/// The variable that means `--non-interactive` for every command of a job.
const NON_INTERACTIVE: &str = "PILLION_NON_INTERACTIVE";

/// What the three standard streams are, looked at once.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// People read stdout.
    pub stdout: bool,
    /// People read stderr: spinners and progress have a place.
    pub stderr: bool,
    /// Somebody can be asked: questions need both directions.
    pub asks: bool,
    /// `--non-interactive`: nobody reads along and nobody is asked, whatever the streams are.
    pub unattended: bool,
    /// The person sits at another machine, and so does their browser.
    pub remote: bool,
    color: bool,
}

impl Terminal {
    pub fn detect(non_interactive: bool) -> Terminal {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let unattended = non_interactive || set(NON_INTERACTIVE).is_some_and(|value| value != "0");
        let stderr = !unattended && std::io::stderr().is_terminal();
        Terminal {
            stdout: !unattended && std::io::stdout().is_terminal(),
            stderr,
            asks: std::io::stdin().is_terminal() && stderr,
            unattended,
            remote: ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"]
                .into_iter()
                .any(|name| set(name).is_some()),
            color: set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb"),
        }
    }

    /// Without colours, whatever the tests run in.
    #[cfg(test)]
    pub fn test(stdout: bool) -> Terminal {
        Terminal {
            stdout,
            stderr: false,
            asks: false,
            unattended: false,
            remote: false,
            color: false,
        }
    }

    /// What a person does to be asked.
    pub fn way_to_be_asked(self) -> &'static str {
        match self.unattended {
            true => "without `--non-interactive` and `PILLION_NON_INTERACTIVE`, a terminal asks",
            false => "run this in a terminal to be asked",
        }
    }

    pub fn on_stdout(self) -> Paint {
        Paint(self.stdout && self.color)
    }

    pub fn on_stderr(self) -> Paint {
        Paint(self.stderr && self.color)
    }
}

/// Puts the end of input in the place of a keyboard: what reads stdin must not wait for somebody to type.
pub fn leave_keyboard() {
    #[cfg(unix)]
    if std::io::stdin().is_terminal()
        && let Ok(nothing) = std::fs::File::open("/dev/null")
    {
        use std::os::fd::AsRawFd as _;
        // SAFETY: both descriptors are open, and nothing has read from stdin yet.
        unsafe { libc::dup2(nothing.as_raw_fd(), libc::STDIN_FILENO) };
    }
}

/// Colours that only ever repeat what the words say.
#[derive(Clone, Copy, Debug)]
pub struct Paint(pub bool);

impl Paint {
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub fn red(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    pub fn cyan(self, text: &str) -> String {
        self.wrap("36", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Text of a server, made harmless for a terminal: control characters could move the cursor, retitle the window
/// or hide what stands elsewhere; so could the marks that change the direction of writing.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| {
        if is_harmful(c) {
            Cow::Owned(c.escape_unicode().to_string())
        } else {
            String::from(c).into()
        }
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// The same on one line, for tables and titles: runs of white space become one space.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    harmless(&words.join(" ")).into_owned()
}

fn is_harmful(c: char) -> bool {
    let directs = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n' && c != '\t') || directs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_obeyed() {
        assert_eq!(harmless("a\tb\nc"), "a\tb\nc");
        assert_eq!(harmless("\x1b[31mred\r"), "\\u{1b}[31mred\\u{d}");
        assert_eq!(harmless("x\u{202e}y\u{9b}"), "x\\u{202e}y\\u{9b}");
        assert_eq!(one_line(" a\r\n  b\t\x07c "), "a b \\u{7}c");
    }
}
