//! Splits a command line into words as its shell would, and refuses what only a shell could carry out.
//!
//! Three kinds of quoting meet here: POSIX shells, PowerShell and cmd. A text with a Windows path is taken for one of
//! the latter two, where a backslash is no escape.

/// Words of one command line, or why there are none.
pub(crate) fn split(text: &str) -> Result<Vec<String>, String> {
    let text = joined(text);
    Splitter {
        is_windows: is_windows(&text),
        characters: text.trim().chars().collect(),
        at: 0,
    }
    .words()
}

/// Line ends that continue a command are blanks: `\` in POSIX shells, a backquote in PowerShell, `^` in cmd.
fn joined(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let bare = line.trim_end();
        match bare.strip_suffix(['\\', '`', '^']) {
            Some(before) if lines.peek().is_some() => {
                out.push_str(before);
                out.push(' ');
            }
            _ => {
                out.push_str(line);
                if lines.peek().is_some() {
                    out.push('\n');
                }
            }
        }
    }
    out
}

/// Whether a text speaks of Windows: a drive, a relative path with a backslash, or a variable of PowerShell.
fn is_windows(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_drive = bytes.windows(3).enumerate().any(|(index, window)| {
        window[0].is_ascii_alphabetic()
            && &window[1..] == b":\\"
            && (index == 0 || !bytes[index - 1].is_ascii_alphanumeric())
    });
    has_drive || text.contains("$env:") || text.starts_with(".\\")
}

struct Splitter {
    characters: Vec<char>,
    at: usize,
    is_windows: bool,
}

impl Splitter {
    fn next(&mut self) -> Option<char> {
        let found = self.characters.get(self.at).copied();
        self.at += 1;
        found
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn follows(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(index, one)| self.characters.get(self.at + index) == Some(&one))
    }

    fn words(mut self) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        // PowerShell calls a quoted path with `&`.
        if self.is_windows && self.follows("& ") {
            self.at += 2;
        }
        loop {
            while self.peek().is_some_and(|one| one == ' ' || one == '\t') {
                self.at += 1;
            }
            match self.peek() {
                None => return Ok(words),
                Some('#') if !self.is_windows => {
                    while self.peek().is_some_and(|one| one != '\n') {
                        self.at += 1;
                    }
                }
                Some(_) => words.push(self.word()?),
            }
        }
    }

    fn word(&mut self) -> Result<String, String> {
        let mut word = String::new();
        while let Some(one) = self.peek() {
            match one {
                ' ' | '\t' => break,
                '\'' => {
                    self.at += 1;
                    self.single(&mut word)?;
                    continue;
                }
                '"' => {
                    self.at += 1;
                    self.double(&mut word)?;
                    continue;
                }
                _ => {}
            }
            self.refuse_operator(one)?;
            self.at += 1;
            match one {
                '\\' if !self.is_windows => word.extend(self.next()),
                '^' if self.is_windows => word.extend(self.next()),
                '$' | '%' => self.reference(one, &mut word)?,
                _ => word.push(one),
            }
        }
        Ok(word)
    }

    /// What a shell would do with this character is nothing a server can be started with.
    fn refuse_operator(&self, one: char) -> Result<(), String> {
        let operator = match one {
            '\n' => return Err("there are several lines: paste one command".to_owned()),
            '|' if self.follows("||") => "||",
            '|' => "|",
            '&' if self.follows("&&") => "&&",
            '&' => "&",
            ';' => ";",
            '<' => "<",
            '>' => ">",
            '`' => "`",
            '(' if !self.is_windows => "(",
            ')' if !self.is_windows => ")",
            _ => return Ok(()),
        };
        Err(match operator {
            "<" | ">" => {
                format!("`{operator}` would redirect: put a value in its place, or quotes around it")
            }
            "`" => substitution(operator),
            _ => format!(
                "`{operator}` joins commands, and no shell is started: paste only the command of the server, \
                 with quotes around what holds a `{operator}`"
            ),
        })
    }

    fn single(&mut self, word: &mut String) -> Result<(), String> {
        loop {
            match self.next() {
                None => return Err("a single quote is not closed".to_owned()),
                // PowerShell doubles a quote inside quotes.
                Some('\'') if self.is_windows && self.peek() == Some('\'') => {
                    self.at += 1;
                    word.push('\'');
                }
                Some('\'') => return Ok(()),
                Some(one) => word.push(one),
            }
        }
    }

    fn double(&mut self, word: &mut String) -> Result<(), String> {
        loop {
            let Some(one) = self.next() else {
                return Err("a double quote is not closed".to_owned());
            };
            match one {
                '"' => return Ok(()),
                '\\' if self.is_windows => {
                    if self.peek() == Some('"') && self.has_later_quote() {
                        self.at += 1;
                        word.push('"');
                    } else {
                        word.push('\\');
                    }
                }
                '\\' => match self.next() {
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                    Some('\n') => {}
                    Some(other) => word.extend(['\\', other]),
                    None => word.push('\\'),
                },
                '`' if self.is_windows => word.extend(self.next()),
                '`' => return Err(substitution("`")),
                '$' | '%' => self.reference(one, word)?,
                _ => word.push(one),
            }
        }
    }

    /// `"C:\dir\"` ends in a backslash; `"a \"b\" c"` goes on.
    fn has_later_quote(&self) -> bool {
        self.characters[self.at + 1..].contains(&'"')
    }

    /// A variable as our own files write it: `${NAME}`.
    fn reference(&mut self, sign: char, word: &mut String) -> Result<(), String> {
        if sign == '$' && self.follows("(") {
            return Err(substitution("$("));
        }
        let rest: String = self.characters[self.at..].iter().take(300).collect();
        let found = if sign == '%' {
            let name = rest.split('%').next().unwrap_or_default();
            let is_closed = rest.len() > name.len();
            (self.is_windows && is_closed && is_name(name)).then(|| (name, name.chars().count() + 1))
        } else {
            let (skipped, rest) = match rest.strip_prefix("env:") {
                Some(rest) if self.is_windows => (4, rest),
                _ => (0, rest.as_str()),
            };
            let end = rest
                .find(|one: char| !(one.is_ascii_alphanumeric() || one == '_'))
                .unwrap_or(rest.len());
            let name = &rest[..end];
            is_name(name).then_some((name, skipped + end))
        };
        match found {
            Some((name, length)) => {
                word.push_str(&format!("${{{name}}}"));
                self.at += length;
            }
            None => word.push(sign),
        }
        Ok(())
    }
}

fn substitution(sign: &str) -> String {
    format!("`{sign}` would run another command: put its result in its place")
}

/// Whether a text can be the name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn words_are_those_of_the_shell() {
        check(r#"npx -y "a b"'c d'\ e"#, &["npx", "-y", "a bc d e"]);
        check(
            r#"x "a\"b" '{"k": "\n"}' """#,
            &["x", "a\"b", "{\"k\": \"\\n\"}", ""],
        );
        check("x \\\n  y # rest", &["x", "y"]);
        check("x $A \"${B}c\" '$C' %D%", &["x", "${A}", "${B}c", "$C", "%D%"]);
    }

    #[test]
    fn windows_keeps_its_backslashes() {
        check(
            r#""C:\a b\s.exe" --d D:\new\"#,
            &[r"C:\a b\s.exe", "--d", r"D:\new\"],
        );
        check(r#"& "C:\s.exe" x"#, &[r"C:\s.exe", "x"]);
        check(
            r"C:\s.exe %A% $env:B 100%",
            &[r"C:\s.exe", "${A}", "${B}", "100%"],
        );
    }

    #[test]
    fn what_only_a_shell_can_do_is_refused() {
        for (text, sign) in [
            ("a | b", "|"),
            ("a && b", "&&"),
            ("a; b", ";"),
            ("a > b", ">"),
            ("a $(b)", "$("),
            ("a \"$(b)\"", "$("),
            ("a `b`", "`"),
            ("a \"b", "quote"),
            ("a\nb", "lines"),
        ] {
            let refused = split(text).unwrap_err();
            assert!(refused.contains(sign), "{text}: {refused}");
        }
        check("a '|' \"&&\"", &["a", "|", "&&"]);
    }
}
