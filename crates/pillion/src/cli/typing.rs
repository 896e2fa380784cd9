//! What a person types while something else is waited for: single keys at once, anything longer with Enter.

use std::io::{Read, Write};
use std::time::Duration;

use tokio::sync::mpsc;

use super::screen::Screen;

/// A key that is followed by another one this soon was pasted.
const PASTE: Duration = Duration::from_millis(50);
/// Longer than any address a browser shows.
const MAX_LINE: usize = 8192;
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;
/// Ctrl-U.
const ERASE_LINE: u8 = 21;

#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// `c` alone.
    Copy,
    /// A line.
    Text(String),
}

/// The keyboard, until it is dropped. What is typed is shown here: the terminal would show keys such as Backspace, too.
pub struct Typing {
    bytes: mpsc::UnboundedReceiver<u8>,
    line: Vec<u8>,
    /// How much of the line is on the screen.
    shown: usize,
    /// Inside of what a key such as an arrow sends.
    escaping: bool,
    /// The settings of the terminal as they were.
    saved: Option<Screen>,
}

impl Typing {
    /// `false`: nobody types.
    pub fn new(reads: bool) -> Typing {
        let (sender, bytes) = mpsc::unbounded_channel();
        let saved = reads.then(Screen::unbuffered);
        if reads {
            // Nothing ends a read of the terminal; the process ends without waiting for this thread.
            std::thread::spawn(move || {
                for byte in std::io::stdin().lock().bytes() {
                    let Ok(byte) = byte else { return };
                    if sender.send(byte).is_err() {
                        return;
                    }
                }
            });
        }
        Typing {
            bytes,
            line: Vec::new(),
            shown: 0,
            escaping: false,
            saved,
        }
    }

    /// The next thing that was typed; nothing is lost when this is given up. Never, when nobody types.
    pub async fn next(&mut self) -> Typed {
        loop {
            let byte = if self.line.eq_ignore_ascii_case(b"c") {
                let Ok(byte) = tokio::time::timeout(PASTE, self.bytes.recv()).await else {
                    self.line.clear();
                    return Typed::Copy;
                };
                byte
            } else {
                self.bytes.recv().await
            };
            let Some(byte) = byte else {
                return std::future::pending().await;
            };
            match byte {
                b'[' | b'O' if self.escaping => {}
                _ if self.escaping => self.escaping = !(0x40..=0x7e).contains(&byte),
                0x1b => self.escaping = true,
                b'\r' | b'\n' => {
                    if let Some(typed) = self.enter() {
                        return typed;
                    }
                }
                BACKSPACE | DELETE => self.rub(),
                ERASE_LINE => {
                    while !self.line.is_empty() {
                        self.rub();
                    }
                }
                // Nothing that is pasted needs them.
                0..0x20 => {}
                _ if self.line.len() < MAX_LINE => self.line.push(byte),
                _ => {}
            }
            // A single `c` may be the key that copies.
            if !self.line.eq_ignore_ascii_case(b"c") {
                self.show();
            }
        }
    }

    fn enter(&mut self) -> Option<Typed> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        if self.shown > 0 {
            self.echo(b"\n");
        }
        self.shown = 0;
        match line.trim() {
            "" => None,
            "c" | "C" => Some(Typed::Copy),
            text => Some(Typed::Text(text.to_owned())),
        }
    }

    /// Takes the last character away.
    fn rub(&mut self) {
        while let Some(byte) = self.line.pop() {
            // The first byte of a character in UTF-8.
            if byte & 0xc0 != 0x80 {
                break;
            }
        }
        if self.shown > self.line.len() {
            self.shown = self.line.len();
            self.echo(b"\x08 \x08");
        }
    }

    fn show(&mut self) {
        if self.shown < self.line.len() {
            self.echo(&self.line[self.shown..]);
            self.shown = self.line.len();
        }
    }

    fn echo(&self, bytes: &[u8]) {
        if self.saved.is_some() {
            // Nobody is left to see it when the terminal is gone.
            let _ = std::io::stderr().write_all(bytes);
        }
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            saved.restore_quietly();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(typed: &str, expected: &[Typed]) {
        let (sender, bytes) = mpsc::unbounded_channel();
        let mut typing = Typing {
            bytes,
            line: Vec::new(),
            shown: 0,
            escaping: false,
            saved: None,
        };
        for byte in typed.bytes() {
            sender.send(byte).expect("it listens");
        }
        for expected in expected {
            assert_eq!(&typing.next().await, expected, "{typed:?}");
        }
    }

    #[tokio::test]
    async fn a_key_counts_at_once_and_a_paste_as_a_whole() {
        let text = |text: &str| Typed::Text(text.to_owned());
        check("c", &[Typed::Copy]).await;
        check("c\n", &[Typed::Copy]).await;
        check("code=1&state=2\r", &[text("code=1&state=2")]).await;
        check(
            "\n http://h/?code=1 \nc",
            &[text("http://h/?code=1"), Typed::Copy],
        )
        .await;
        check("ab\x7fx\n", &[text("ax")]).await;
        check("ä\x7fb\x1b[Dc\n", &[text("bc")]).await;
        check("half of it\x15code=1\n", &[text("code=1")]).await;
    }
}
