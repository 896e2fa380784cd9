//! What a person types while something else is waited for: single keys at once, anything longer with Enter.

use std::io::Read;
use std::time::Duration;

use tokio::sync::mpsc;

use super::screen::Screen;

/// A key that is followed by another one this soon was pasted.
const PASTE: Duration = Duration::from_millis(50);

#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// `c` alone.
    Copy,
    /// A line.
    Text(String),
}

/// The keyboard, until it is dropped.
pub struct Typing {
    bytes: mpsc::UnboundedReceiver<u8>,
    line: Vec<u8>,
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
            match byte {
                None => return std::future::pending().await,
                Some(b'\r' | b'\n') => {
                    let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
                    match line.trim() {
                        "" => {}
                        "c" | "C" => return Typed::Copy,
                        text => return Typed::Text(text.to_owned()),
                    }
                }
                // Backspace.
                Some(8 | 127) => drop(self.line.pop()),
                Some(byte) if self.line.len() < 8192 => self.line.push(byte),
                Some(_) => {}
            }
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
    }
}
