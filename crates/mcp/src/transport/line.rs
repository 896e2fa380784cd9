//! Cuts what a child writes to stdout into lines, with bounded memory.
//!
//! A line that begins like a JSON message is kept whole up to the limit. Any other line is noise, of which only the beginning is kept.
//! Of a line over the limit the two edges remain, so that the call it answers can be told.

use memchr::memchr;

use crate::limits::{
    BIG_MESSAGE, ENDLESS, KEEP_BUFFER, NOISE_LINE, OVERSIZE_EDGE, READ_BUFFER, READ_BUFFER_MAX,
};

/// What a [`LineReader`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Begins like a message, without its line end.
    Message(&'a [u8]),
    /// The same, so big that its buffer goes with it.
    BigMessage(Vec<u8>),
    /// The beginning of a line that cannot be a message.
    Noise(&'a [u8]),
    /// The line has just passed the limit and has not ended yet.
    TooLong { head: &'a [u8] },
    /// The end of a line that was too long.
    EndOfTooLong { head: &'a [u8], tail: &'a [u8] },
    /// The line is now many times longer than allowed and still goes on.
    Endless,
}

/// Collects bytes and hands out lines.
pub(crate) struct LineReader {
    limit: usize,
    buffer: Vec<u8>,
    /// Where the current line begins in `buffer`.
    start: usize,
    /// Up to where `buffer` has been searched for a line end.
    searched: usize,
    /// Set while the current line is not kept.
    discarding: Option<Discarded>,
}

struct Discarded {
    head: Vec<u8>,
    tail: Vec<u8>,
    length: usize,
    told_endless: bool,
    noise: bool,
}

impl LineReader {
    pub(crate) fn new(limit: usize) -> LineReader {
        LineReader {
            limit: limit.max(OVERSIZE_EDGE),
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            discarding: None,
        }
    }

    /// Room for the next read; what is read is appended here.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.compact();
        let wanted = self.buffer.len().clamp(READ_BUFFER, READ_BUFFER_MAX);
        if self.buffer.capacity() - self.buffer.len() < READ_BUFFER / 4 {
            self.buffer.reserve(wanted);
        }
        &mut self.buffer
    }

    /// Hands every line in the buffer to `found`.
    pub(crate) fn drain(&mut self, mut found: impl FnMut(Line<'_>)) {
        loop {
            let end = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
            if let Some(discarded) = &mut self.discarding {
                let until = end.unwrap_or(self.buffer.len());
                discarded.take(&self.buffer[self.start..until]);
                match end {
                    Some(end) => {
                        discarded.end(self.limit, &mut found);
                        self.discarding = None;
                        self.next_line(end + 1);
                        continue;
                    }
                    None => {
                        discarded.tell(self.limit, &mut found);
                        self.forget();
                        return;
                    }
                }
            }
            match end {
                Some(end) => {
                    let line = trim(&self.buffer[self.start..end]);
                    if line.len() > self.limit {
                        let edge = line.len() - OVERSIZE_EDGE;
                        let head = &line[..OVERSIZE_EDGE];
                        found(Line::EndOfTooLong {
                            head,
                            tail: &line[edge..],
                        });
                    } else if is_message(line) && line.len() >= BIG_MESSAGE {
                        let line = self.take_line(end);
                        found(Line::BigMessage(line));
                        continue;
                    } else if is_message(line) {
                        found(Line::Message(line));
                    } else if !line.is_empty() {
                        found(Line::Noise(&line[..line.len().min(NOISE_LINE)]));
                    }
                    self.next_line(end + 1);
                }
                None => {
                    self.searched = self.buffer.len();
                    self.bound(&mut found);
                    return;
                }
            }
        }
    }

    /// The stream ended: what is left without a line end is a line too, some servers never finish their last one.
    pub(crate) fn finish(&mut self, found: impl FnMut(Line<'_>)) {
        self.buffer.push(b'\n');
        self.drain(found);
    }

    /// Stops keeping the unfinished line if it is too long or cannot become a message.
    fn bound(&mut self, found: &mut impl FnMut(Line<'_>)) {
        let line = &self.buffer[self.start..];
        let begun = line.iter().position(|byte| !byte.is_ascii_whitespace());
        let noise = match begun {
            Some(at) => !matches!(line[at], b'{' | b'[') && line.len() > NOISE_LINE,
            None => line.len() > NOISE_LINE,
        };
        if !noise && line.len() < self.limit {
            return;
        }
        let mut discarded = Discarded {
            head: line[..OVERSIZE_EDGE.min(line.len())].to_vec(),
            tail: Vec::new(),
            length: 0,
            told_endless: false,
            noise,
        };
        discarded.take(line);
        if !noise {
            found(Line::TooLong {
                head: &discarded.head,
            });
        }
        self.discarding = Some(discarded);
        self.forget();
    }

    /// Gives the line that ends here away, and keeps what follows it.
    fn take_line(&mut self, end: usize) -> Vec<u8> {
        let rest = self.buffer[end + 1..].to_vec();
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(end);
        line.drain(..self.start);
        self.next_line(0);
        line
    }

    fn next_line(&mut self, at: usize) {
        self.start = at;
        self.searched = at;
    }

    /// Everything in the buffer has been dealt with.
    fn forget(&mut self) {
        self.buffer.clear();
        self.next_line(0);
        self.compact();
    }

    /// Moves the unfinished line to the front, and gives a big buffer back.
    fn compact(&mut self) {
        let rest = self.buffer.len() - self.start;
        if self.buffer.capacity() > KEEP_BUFFER && rest < READ_BUFFER {
            let mut small = Vec::with_capacity(READ_BUFFER);
            small.extend_from_slice(&self.buffer[self.start..]);
            self.buffer = small;
        } else if self.start > 0 {
            self.buffer.copy_within(self.start.., 0);
            self.buffer.truncate(rest);
        }
        self.searched -= self.start;
        self.start = 0;
    }
}

impl Discarded {
    fn take(&mut self, piece: &[u8]) {
        self.length += piece.len();
        let from = piece.len().saturating_sub(OVERSIZE_EDGE);
        self.tail.extend_from_slice(&piece[from..]);
        let excess = self.tail.len().saturating_sub(OVERSIZE_EDGE);
        self.tail.drain(..excess);
    }

    /// The line goes on.
    fn tell(&mut self, limit: usize, found: &mut impl FnMut(Line<'_>)) {
        if self.noise && self.length >= limit {
            self.noise = false;
            found(Line::TooLong { head: &self.head });
        }
        if !self.told_endless && self.length >= limit.saturating_mul(ENDLESS) {
            self.told_endless = true;
            found(Line::Endless);
        }
    }

    fn end(&mut self, limit: usize, found: &mut impl FnMut(Line<'_>)) {
        if self.noise && self.length < limit {
            found(Line::Noise(trim(&self.head)));
        } else {
            found(Line::EndOfTooLong {
                head: &self.head,
                tail: trim(&self.tail),
            });
        }
    }
}

fn is_message(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'{' | b'['))
}

fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(limit: usize, pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = LineReader::new(limit);
        let mut seen = Vec::new();
        for piece in pieces {
            reader.room().extend_from_slice(piece);
            reader.drain(|line| seen.push(show(line)));
        }
        reader.finish(|line| seen.push(show(line)));
        seen
    }

    fn show(line: Line<'_>) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match line {
            Line::Message(bytes) => format!("message {}", text(bytes)),
            Line::BigMessage(bytes) => format!("big {}", bytes.len()),
            Line::Noise(bytes) => format!("noise {}", text(bytes)),
            Line::TooLong { head } => format!("too long {}", head.len()),
            Line::EndOfTooLong { head, tail } => format!("end {} {}", head.len(), tail.len()),
            Line::Endless => "endless".into(),
        }
    }

    #[test]
    fn banners_line_ends_and_pieces() {
        let seen = lines(
            4096,
            &[b"Hello\r\n\n{\"a\"", b":1}\r", b"\n[1]\n  {}\n{\"unfinished\":1}"],
        );
        assert_eq!(
            seen,
            [
                "noise Hello",
                "message {\"a\":1}",
                "message [1]",
                "message {}",
                "message {\"unfinished\":1}"
            ]
        );
    }

    #[test]
    fn a_line_over_the_limit_leaves_its_edges_and_the_next_one_whole() {
        let long = format!("{{{}}}", "x".repeat(5000));
        let seen = lines(
            2000,
            &[
                &long.as_bytes()[..1500],
                &long.as_bytes()[1500..2500],
                &long.as_bytes()[2500..],
                b"\n{}\n",
            ],
        );
        assert_eq!(seen, ["too long 512", "end 512 512", "message {}"]);
        let at_once = format!("{long}\n{{}}\n");
        assert_eq!(lines(2000, &[at_once.as_bytes()]), ["end 512 512", "message {}"]);
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let mut reader = LineReader::new(1_000_000);
        let mut seen = Vec::new();
        for _ in 0..200 {
            reader.room().extend_from_slice(&[b'x'; 50_000]);
            reader.drain(|line| seen.push(show(line)));
            assert!(reader.buffer.capacity() <= KEEP_BUFFER * 2);
        }
        assert_eq!(seen, ["too long 512", "endless"]);
    }

    #[test]
    fn a_big_buffer_is_given_back() {
        let mut reader = LineReader::new(10_000_000);
        let big = format!("{{{}}}\n{{", "x".repeat(3_000_000));
        for piece in big.as_bytes().chunks(60_000) {
            reader.room().extend_from_slice(piece);
            reader.drain(|_| ());
        }
        assert!(reader.room().capacity() <= KEEP_BUFFER);
        assert_eq!(reader.buffer, b"{");
    }

    #[test]
    fn a_very_big_message_takes_its_buffer_along() {
        let big = format!("{{{}}}", "x".repeat(BIG_MESSAGE));
        let text = format!("{{}}\n{big}\n[]\n{{");
        let mut reader = LineReader::new(2 * BIG_MESSAGE);
        let mut seen = Vec::new();
        for piece in text.as_bytes().chunks(700_000) {
            reader.room().extend_from_slice(piece);
            reader.drain(|line| seen.push(show(line)));
        }
        assert_eq!(
            seen,
            [
                "message {}".to_owned(),
                format!("big {}", big.len()),
                "message []".into()
            ]
        );
        assert_eq!(reader.room(), b"{");
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_lines(
            parts in prop::collection::vec("[{x\\[ \"\r]{0,40}", 0..20),
            cuts in prop::collection::vec(1usize..30, 1..40),
        ) {
            let text = parts.join("\n");
            let whole = lines(10_000, &[text.as_bytes()]);
            let mut pieces = Vec::new();
            let mut rest = text.as_bytes();
            let mut cut = cuts.iter().cycle();
            while !rest.is_empty() {
                let at = (*cut.next().expect("cycles")).min(rest.len());
                pieces.push(&rest[..at]);
                rest = &rest[at..];
            }
            prop_assert_eq!(lines(10_000, &pieces), whole);
        }
    }
}
