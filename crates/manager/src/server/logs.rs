//! The last lines that one server wrote or sent, bounded in number and bytes.

use std::collections::VecDeque;

use protocol::{LogLevel, LogLine, LogSource};

use crate::env;
use crate::limits;

#[derive(Default)]
pub(crate) struct Logs {
    lines: VecDeque<LogLine>,
    bytes: usize,
    /// Lines that fell out of the ring.
    dropped: u64,
}

impl Logs {
    /// Keeps one line; returns it for whoever follows.
    pub fn push(&mut self, source: LogSource, level: LogLevel, text: &str) -> LogLine {
        let text: String = text.chars().take(limits::LOG_LINE_CHARS).collect();
        let line = LogLine {
            at: env::now(),
            source,
            level,
            text,
        };
        self.bytes += line.text.len();
        self.lines.push_back(line.clone());
        while self.lines.len() > limits::LOG_LINES || self.bytes > limits::LOG_BYTES {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
            self.dropped += 1;
        }
        line
    }

    /// The newest `limit` lines, oldest first, and how many earlier ones are not among them.
    pub fn last(&self, limit: usize) -> (Vec<LogLine>, u64) {
        let skipped = self.lines.len().saturating_sub(limit);
        (
            self.lines.iter().skip(skipped).cloned().collect(),
            self.dropped + skipped as u64,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_bounded_and_counts_what_it_lost() {
        let mut logs = Logs::default();
        for index in 0..limits::LOG_LINES + 5 {
            logs.push(LogSource::Stderr, LogLevel::Info, &index.to_string());
        }
        let (lines, dropped) = logs.last(2);
        assert_eq!(
            lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(),
            ["2003", "2004"]
        );
        assert_eq!(dropped, limits::LOG_LINES as u64 + 3);
    }
}
