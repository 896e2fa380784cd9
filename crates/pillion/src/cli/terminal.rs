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
/// or hide what stands elsewhere; so could the marks that change the direction of writing, and what has no width.
pub fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, is_harmful)
}

/// The same on one line, for tables and titles: runs of white space become one space.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    harmless(&words.join(" ")).into_owned()
}

/// A value that a person decides about, on one line and with nothing in it that does not show: no line of it passes for one
/// of ours.
pub fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |one| {
        matches!(one, '\n' | '\t') || is_harmful(one) || is_ignorable(one)
    })
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for one in text.chars() {
        match one {
            '\n' | '\t' if is_escaped(one) => out.extend(one.escape_default()),
            one if is_escaped(one) => out.extend(one.escape_unicode()),
            one => out.push(one),
        }
    }
    Cow::Owned(out)
}

fn is_harmful(one: char) -> bool {
    let directs = matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = matches!(one, '\u{2028}' | '\u{2029}');
    let is_nothing =
        matches!(one, '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e001f}');
    (one.is_control() && one != '\n' && one != '\t') || directs || breaks || is_nothing
}

/// What shows as nothing, though some writing and some pictures need it.
fn is_ignorable(one: char) -> bool {
    matches!(one,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200c}' | '\u{200d}' | '\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}' | '\u{e0020}'..='\u{e0fff}')
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
        assert_eq!(harmless("n\u{200b}o\u{2028}"), "n\\u{200b}o\\u{2028}");
        // A family, and Persian.
        assert_eq!(
            harmless("👨\u{200d}👩 می\u{200c}شود"),
            "👨\u{200d}👩 می\u{200c}شود"
        );
    }

    #[test]
    fn a_value_to_decide_about_is_one_line_and_shows_all() {
        assert_eq!(plain("a\n  url:\tx"), "a\\n  url:\\tx");
        assert_eq!(plain("no\u{200d}de\u{ad}"), "no\\u{200d}de\\u{ad}");
        assert_eq!(plain("grün 漢字 👩"), "grün 漢字 👩");
    }
}
