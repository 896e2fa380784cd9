//! `--trace`: each frame between host and Pillion on one line, with an arrow; long ones are shortened.
//! What a server reports of its own wire stands between them.

use std::sync::{Arc, Mutex, PoisonError};

use crate::cli::terminal::{Paint, harmless};

/// A frame longer than this shows its head, its tail and its size.
const MAX_CHARS: usize = 200;
const TAIL_CHARS: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host to Pillion.
    Out,
    /// From Pillion to the host.
    In,
}

/// Where frames are shown, if they are.
#[derive(Clone)]
pub struct Trace(Option<Arc<Mutex<Show>>>);

type Show = dyn FnMut(&str) + Send;

impl Trace {
    pub fn off() -> Trace {
        Trace(None)
    }

    pub fn to(show: impl FnMut(&str) + Send + 'static) -> Trace {
        Trace(Some(Arc::new(Mutex::new(show))))
    }

    pub fn frame(&self, direction: Direction, text: &str) {
        let arrow = match direction {
            Direction::Out => '→',
            Direction::In => '←',
        };
        self.line(&format!("{arrow} {text}"));
    }

    pub fn line(&self, text: &str) {
        if let Some(show) = &self.0 {
            let mut show = show.lock().unwrap_or_else(PoisonError::into_inner);
            show(&shorten(text));
        }
    }
}

pub fn paint(paint: Paint, line: &str) -> String {
    paint.dim(&harmless(line))
}

fn shorten(text: &str) -> String {
    let text = text.replacen(r#"{"jsonrpc":"2.0","#, "{", 1);
    let count = text.chars().count();
    if count <= MAX_CHARS {
        return text;
    }
    let head: String = text.chars().take(MAX_CHARS - TAIL_CHARS).collect();
    let tail: String = text.chars().skip(count - TAIL_CHARS).collect();
    format!("{head} … {tail} ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_frames_stand_whole_and_long_ones_are_cut() {
        assert_eq!(
            shorten(r#"← {"jsonrpc":"2.0","id":1,"result":null}"#),
            r#"← {"id":1,"result":null}"#
        );
        let long = shorten(&format!("{{\"text\":\"{}\"}}", "ä".repeat(300)));
        assert!(long.ends_with("ä\"} (611 bytes)"), "{long}");
        assert!(long.chars().count() < MAX_CHARS + 20, "{long}");
    }
}
