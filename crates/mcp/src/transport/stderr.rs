//! What a child writes to stderr: its lines made harmless, and the last of them remembered.

use std::collections::VecDeque;

use crate::limits::{STDERR_LINE, STDERR_RING, STDERR_TAIL};

/// The last lines of stderr, at most 64 KiB of them.
#[derive(Default)]
pub(crate) struct Ring {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Ring {
    pub(crate) fn push(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > STDERR_RING {
            let Some(first) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= first.len() + 1;
        }
    }

    /// The last lines, as an error shows them.
    pub(crate) fn tail(&self) -> String {
        let mut bytes = 0;
        let mut from = self.lines.len();
        while from > 0 && bytes + self.lines[from - 1].len() < STDERR_TAIL {
            from -= 1;
            bytes += self.lines[from].len() + 1;
        }
        if from == self.lines.len()
            && let Some(last) = self.lines.back()
        {
            let mut start = last.len().saturating_sub(STDERR_TAIL);
            while !last.is_char_boundary(start) {
                start += 1;
            }
            return last[start..].to_owned();
        }
        self.lines
            .range(from..)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Cuts stderr into lines.
#[derive(Default)]
pub(crate) struct StderrLines {
    rest: Vec<u8>,
}

impl StderrLines {
    pub(crate) fn feed(&mut self, bytes: &[u8], mut line: impl FnMut(String)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            for piece in piece.chunks(STDERR_LINE) {
                self.rest.extend_from_slice(piece);
                if self.rest.ends_with(b"\n") || self.rest.len() >= STDERR_LINE {
                    self.finish(&mut line);
                }
            }
        }
    }

    pub(crate) fn finish(&mut self, mut line: impl FnMut(String)) {
        let text = harmless(&String::from_utf8_lossy(&self.rest));
        self.rest.clear();
        if !text.is_empty() {
            line(text);
        }
    }
}

/// Without terminal sequences and control characters, which could rewrite what a person sees.
pub(crate) fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.trim_end().chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape(&mut characters),
            '\t' => clean.push('\t'),
            // A progress bar writes over its own line.
            '\r' => clean.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            _ if character.is_control() => clean.push('\u{fffd}'),
            _ => clean.push(character),
        }
    }
    clean
}

/// The rest of an ANSI sequence: `[` up to its final byte, or `]` up to BEL or `ESC \`, or one character.
fn skip_escape(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        Some('[') => {
            while let Some(next) = characters.next_if(|next| matches!(next, ' '..='~')) {
                if matches!(next, '@'..='~') {
                    break;
                }
            }
        }
        Some(']') => {
            while let Some(next) = characters.next() {
                if next == '\u{7}' {
                    break;
                }
                if next == '\u{1b}' {
                    characters.next_if_eq(&'\\');
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_lines() {
        let check = |input: &str, expected: &str| assert_eq!(harmless(input), expected);
        check("plain\ttext\r\n", "plain\ttext");
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}]0;title\u{7}after", "after");
        check("a\u{8}b\u{0}c", "a\u{fffd}b\u{fffd}c");
        check("x\u{202e}y", "xy");
    }

    #[test]
    fn lines_are_cut_and_the_last_ones_remembered() {
        let mut lines = StderrLines::default();
        let mut ring = Ring::default();
        for number in 0..4000 {
            lines.feed(format!("line {number} {}\n", "x".repeat(30)).as_bytes(), |line| {
                ring.push(line)
            });
        }
        lines.feed(&[b'y'; STDERR_LINE + 10], |line| ring.push(line));
        assert!(ring.bytes <= STDERR_RING);
        assert_eq!(ring.tail().len(), STDERR_TAIL);
        lines.finish(|line| ring.push(line));
        assert_eq!(ring.tail(), "yyyyyyyyyy");
        ring.push("Error: no token".into());
        assert_eq!(ring.tail(), "yyyyyyyyyy\nError: no token");
    }
}
