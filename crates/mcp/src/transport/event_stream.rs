//! Reads an event stream (`text/event-stream`, WHATWG HTML §9.2.6) piece by piece.
//!
//! It knows the framing only: what a lost stream means is decided by the links.
//! Memory is bounded: of an event that grows over the limit only its two ends are kept.

use std::time::Duration;

use crate::limits::{EVENT_ID, OVERSIZE_EDGE};
use bytes::{Buf, Bytes, BytesMut};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the stream brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A complete event. Events without data are not messages and are not reported.
    Event { kind: Kind, data: Bytes },
    /// The current event has just grown over the limit: the first bytes of its data. The rest of it is thrown away.
    TooLarge { head: Vec<u8> },
    /// The event over the limit has ended. These are the first and the last bytes of its data.
    Skipped { head: Vec<u8>, tail: Vec<u8> },
}

/// The `event` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No type, or `message`: the data is a JSON-RPC message.
    Message,
    /// `endpoint` of the old HTTP+SSE transport.
    Endpoint,
    /// Anything else, such as `ping`.
    Other,
}

#[derive(Debug)]
pub(crate) struct EventStream {
    limit: usize,
    /// Bytes that arrived and were not looked at yet.
    pending: Bytes,
    /// The last byte was a carriage return, so a line feed that follows belongs to it.
    after_return: bool,
    /// No line has ended yet: the first one may start with a byte order mark.
    at_start: bool,
    /// The unfinished line, when it spans several pieces.
    line: BytesMut,
    /// The unfinished line is a comment and is not kept.
    in_comment: bool,
    oversize: Option<Oversize>,
    kind: Kind,
    data: BytesMut,
    has_data: bool,
    /// The `id` field of the unfinished event; it counts once the event is complete.
    next_id: Option<String>,
    last_id: String,
    retry: Option<Duration>,
}

/// What is kept of an event over the limit until it ends.
#[derive(Debug)]
struct Oversize {
    head: Vec<u8>,
    tail: Vec<u8>,
    line: OversizeLine,
}

/// What is known of the unfinished line of an event over the limit.
#[derive(Debug)]
enum OversizeLine {
    /// Its first bytes, too few to know the field.
    Start(Vec<u8>),
    Data,
    Other,
}

impl EventStream {
    pub fn new(limit: usize) -> EventStream {
        EventStream {
            limit,
            pending: Bytes::new(),
            after_return: false,
            at_start: true,
            line: BytesMut::new(),
            in_comment: false,
            oversize: None,
            kind: Kind::Message,
            data: BytesMut::new(),
            has_data: false,
            next_id: None,
            last_id: String::new(),
            retry: None,
        }
    }

    /// Adds what was read. [`EventStream::next`] is then called until it gives nothing.
    pub fn push(&mut self, piece: Bytes) {
        debug_assert!(self.pending.is_empty(), "the last piece was not read to its end");
        self.pending = piece;
    }

    pub fn next(&mut self) -> Option<Item> {
        while !self.pending.is_empty() {
            if std::mem::take(&mut self.after_return) && self.pending[0] == b'\n' {
                self.pending.advance(1);
                continue;
            }
            let item = if let Some(end) = memchr::memchr2(b'\r', b'\n', &self.pending) {
                let piece = self.pending.split_to(end);
                self.after_return = self.pending[0] == b'\r';
                self.pending.advance(1);
                self.end_line(&piece)
            } else {
                let piece = std::mem::take(&mut self.pending);
                self.keep(&piece)
            };
            if item.is_some() {
                return item;
            }
        }
        None
    }

    /// A new connection takes up the stream: what the old one left unfinished is discarded.
    pub fn restart(&mut self) {
        let last_id = std::mem::take(&mut self.last_id);
        let retry = self.retry;
        *self = EventStream {
            last_id,
            retry,
            ..EventStream::new(self.limit)
        };
    }

    /// The id to resume after: that of the last complete event, unless a server took it back.
    pub fn last_id(&self) -> Option<&str> {
        (!self.last_id.is_empty()).then_some(self.last_id.as_str())
    }

    /// How long the server asked to wait before a new connection.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// A piece of a line whose end has not arrived.
    fn keep(&mut self, piece: &[u8]) -> Option<Item> {
        if let Some(oversize) = &mut self.oversize {
            oversize.add(piece);
            return None;
        }
        if self.line.is_empty() && piece.first() == Some(&b':') {
            self.in_comment = true;
        }
        if self.in_comment {
            return None;
        }
        if self.is_over_limit(piece.len()) {
            return Some(self.start_skipping(piece));
        }
        self.line.extend_from_slice(piece);
        None
    }

    /// The last piece of a line.
    fn end_line(&mut self, piece: &[u8]) -> Option<Item> {
        if std::mem::take(&mut self.in_comment) {
            self.at_start = false;
            return None;
        }
        if let Some(oversize) = &mut self.oversize {
            oversize.add(piece);
            if !oversize.end_line() {
                return None;
            }
            return self.end_event();
        }
        if self.is_over_limit(piece.len()) && !(self.line.is_empty() && piece.starts_with(b":")) {
            let item = self.start_skipping(piece);
            if let Some(oversize) = &mut self.oversize {
                oversize.end_line();
            }
            return Some(item);
        }
        let at_start = std::mem::take(&mut self.at_start);
        if self.line.is_empty() {
            let line = if at_start {
                piece.strip_prefix(BYTE_ORDER_MARK).unwrap_or(piece)
            } else {
                piece
            };
            if line.is_empty() {
                return self.end_event();
            }
            let (name, value) = split_field(line);
            if name == b"data" {
                self.add_data(value);
            } else {
                self.field(name, value);
            }
            return None;
        }

        self.line.extend_from_slice(piece);
        let mut line = std::mem::take(&mut self.line);
        if at_start && line.starts_with(BYTE_ORDER_MARK) {
            line.advance(BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = split_field(&line);
        if name != b"data" {
            self.field(name, value);
        } else if self.has_data {
            self.add_data(value);
        } else {
            // The usual case, one long line: it becomes the data without being copied.
            line.advance(line.len() - value.len());
            self.data = line;
            self.has_data = true;
        }
        None
    }

    fn add_data(&mut self, value: &[u8]) {
        if std::mem::replace(&mut self.has_data, true) {
            self.data.extend_from_slice(b"\n");
        }
        self.data.extend_from_slice(value);
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"event" => {
                self.kind = match value {
                    b"" | b"message" => Kind::Message,
                    b"endpoint" => Kind::Endpoint,
                    _ => Kind::Other,
                }
            }
            b"id" if !value.contains(&0) => {
                // An id that cannot be sent back in a header makes the stream one that cannot be resumed.
                let fits = value.len() <= EVENT_ID && !value.iter().any(u8::is_ascii_control);
                let usable = if fits { value } else { b"" };
                self.next_id = Some(String::from_utf8_lossy(usable).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = value.iter().fold(0_u32, |sum, digit| {
                    sum.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
                });
                self.retry = Some(Duration::from_millis(millis.into()));
            }
            // Comments have an empty name; unknown fields are ignored.
            _ => {}
        }
    }

    fn end_event(&mut self) -> Option<Item> {
        if let Some(id) = self.next_id.take() {
            self.last_id = id;
        }
        let kind = std::mem::replace(&mut self.kind, Kind::Message);
        let data = std::mem::take(&mut self.data).freeze();
        self.has_data = false;
        if let Some(Oversize { head, tail, .. }) = self.oversize.take() {
            return Some(Item::Skipped { head, tail });
        }
        if data.is_empty() {
            return None;
        }
        let data = match std::str::from_utf8(&data) {
            Ok(_) => data,
            Err(_) => Bytes::from(String::from_utf8_lossy(&data).into_owned()),
        };
        Some(Item::Event { kind, data })
    }

    fn is_over_limit(&self, more: usize) -> bool {
        self.data.len() + self.line.len() + more > self.limit
    }

    fn start_skipping(&mut self, piece: &[u8]) -> Item {
        let mut oversize = Oversize {
            head: Vec::new(),
            tail: Vec::new(),
            line: OversizeLine::Start(Vec::new()),
        };
        oversize.keep(&std::mem::take(&mut self.data));
        oversize.add(&std::mem::take(&mut self.line));
        oversize.add(piece);
        let head = oversize.head.clone();
        self.oversize = Some(oversize);
        Item::TooLarge { head }
    }
}

impl Oversize {
    /// A piece of the unfinished line.
    fn add(&mut self, piece: &[u8]) {
        const FIELD: &[u8] = b"data: ";
        let mut rest = piece;
        if let OversizeLine::Start(start) = &mut self.line {
            let (more, after) = rest.split_at(rest.len().min(FIELD.len() - start.len()));
            start.extend_from_slice(more);
            rest = after;
            if start.len() < FIELD.len() {
                return;
            }
            let start = std::mem::take(start);
            self.line = match split_field(&start) {
                (b"data", value) => {
                    self.keep(value);
                    OversizeLine::Data
                }
                _ => OversizeLine::Other,
            };
        }
        if matches!(self.line, OversizeLine::Data) {
            self.keep(rest);
        }
    }

    /// Says whether the line was empty, which ends the event.
    fn end_line(&mut self) -> bool {
        let line = std::mem::replace(&mut self.line, OversizeLine::Start(Vec::new()));
        matches!(line, OversizeLine::Start(start) if start.is_empty())
    }

    fn keep(&mut self, data: &[u8]) {
        let missing = OVERSIZE_EDGE - self.head.len();
        self.head.extend_from_slice(&data[..data.len().min(missing)]);
        let newest = &data[data.len().saturating_sub(OVERSIZE_EDGE)..];
        let surplus = (self.tail.len() + newest.len()).saturating_sub(OVERSIZE_EDGE);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(newest);
    }
}

/// A line is `name: value`; one blank after the colon is not part of the value.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 4096;

    fn read(pieces: &[&[u8]]) -> (Vec<Item>, EventStream) {
        let mut stream = EventStream::new(LIMIT);
        let mut items = Vec::new();
        for piece in pieces {
            stream.push(Bytes::copy_from_slice(piece));
            while let Some(item) = stream.next() {
                items.push(item);
            }
        }
        (items, stream)
    }

    /// Whatever way the bytes are cut, the events are the same.
    fn check(text: &[u8], expected: &[(Kind, &str)]) -> EventStream {
        let expected: Vec<Item> = expected
            .iter()
            .map(|(kind, data)| Item::Event {
                kind: *kind,
                data: Bytes::copy_from_slice(data.as_bytes()),
            })
            .collect();
        for cut in 0..=text.len() {
            assert_eq!(read(&[&text[..cut], &text[cut..]]).0, expected, "cut at {cut}");
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        let (items, stream) = read(&single);
        assert_eq!(items, expected, "cut at every byte");
        stream
    }

    #[test]
    fn events_come_out_however_they_are_written_and_cut() {
        use Kind::{Endpoint, Message, Other};
        let rows: &[(&str, &[(Kind, &str)])] = &[
            ("data: a\n\n", &[(Message, "a")]),
            ("data:a\n\ndata:  b\n\n", &[(Message, "a"), (Message, " b")]),
            (
                "event: message\r\ndata: {\"a\":1}\r\n\r\n",
                &[(Message, "{\"a\":1}")],
            ),
            ("data: a\r\rdata: b\r\r", &[(Message, "a"), (Message, "b")]),
            ("data: a\r\n\ndata: b\n\r\n", &[(Message, "a"), (Message, "b")]),
            ("data: [1,\ndata: 2]\n\n", &[(Message, "[1,\n2]")]),
            ("data\ndata: x\ndata:\n\n", &[(Message, "\nx\n")]),
            ("\u{feff}data: a\n\n", &[(Message, "a")]),
            ("\u{feff}\n\u{feff}data: a\n\ndata: b\n\n", &[(Message, "b")]),
            ("\u{feff}: hello\n\ndata: a\n\n", &[(Message, "a")]),
            (
                ": open\n\n:\r\n\nevent: ping\ndata: keepalive\n\ndata: a\n\n",
                &[(Other, "keepalive"), (Message, "a")],
            ),
            (
                "event: endpoint\ndata: /m?x=1\n\ndata: a\n\n",
                &[(Endpoint, "/m?x=1"), (Message, "a")],
            ),
            ("event: ping\n\ndata: a\n\n", &[(Message, "a")]),
            ("unknown: 1\ndata: a\nrest\n\n", &[(Message, "a")]),
            ("data: naïve λ 日本 😀\n\n", &[(Message, "naïve λ 日本 😀")]),
            ("data: cut before its blank line\n", &[]),
            ("\n\n\n", &[]),
        ];
        for (text, expected) in rows {
            check(text.as_bytes(), expected);
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        check(b"data: a\xff\n\n", &[(Kind::Message, "a\u{fffd}")]);
    }

    #[test]
    fn an_id_counts_when_its_event_is_complete() {
        let id = |text: &[u8]| check(text, &[]).last_id().map(str::to_owned);
        assert_eq!(id(b"id: 7\ndata:\n\n").as_deref(), Some("7"));
        assert_eq!(id(b"id: 7\n\nid: 8\n").as_deref(), Some("7"));
        assert_eq!(id(b"id: 7\n\nid: 8\0\n\n").as_deref(), Some("7"));
        assert_eq!(id(b"id: 7\n\nid\n\n"), None);
        assert_eq!(id(b"id: 7\n\nid: a\x01b\n\n"), None);
        assert_eq!(id(b": nothing\n\n"), None);
    }

    #[test]
    fn an_id_too_long_for_a_header_makes_the_stream_one_without_ids() {
        let mut stream = EventStream::new(2 * EVENT_ID);
        let mut id_after = |length: usize| {
            stream.push(Bytes::from(format!("id: {}\n\n", "x".repeat(length))));
            assert_eq!(stream.next(), None);
            stream.last_id().map(str::len)
        };
        assert_eq!(id_after(EVENT_ID), Some(EVENT_ID));
        assert_eq!(id_after(EVENT_ID + 1), None);
    }

    #[test]
    fn retry_is_a_number_of_milliseconds() {
        let retry = |text: &[u8]| check(text, &[]).retry();
        assert_eq!(retry(b"retry: 500\n\n"), Some(Duration::from_millis(500)));
        assert_eq!(
            retry(b"retry: 5\n\nretry: soon\n\nretry:\n\nretry: -1\n\n"),
            Some(Duration::from_millis(5))
        );
        assert_eq!(
            retry(b"retry: 99999999999999999999999\n\n"),
            Some(Duration::from_millis(u32::MAX.into()))
        );
        assert_eq!(retry(b"id: 1\n\n"), None);
    }

    #[test]
    fn an_event_over_the_limit_is_skipped_and_the_next_one_is_read() {
        let long = "y".repeat(2 * LIMIT);
        let text = format!(
            "id: 3\ndata: {{\"id\":5,\"x\":\"{long}\"\nid: 4\ndata\ndata: ,\"z\":1}}\n: c\n\ndata: a\n\n"
        );
        for size in [1, 7, 100, LIMIT - 1, LIMIT, text.len()] {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let (items, stream) = read(&pieces);
            let [
                Item::TooLarge { .. },
                Item::Skipped { head, tail },
                Item::Event { data, .. },
            ] = items.as_slice()
            else {
                panic!("{items:?} with pieces of {size}");
            };
            assert!(head.starts_with(b"{\"id\":5,"));
            assert!(tail.ends_with(b"y\",\"z\":1}"));
            assert_eq!((head.len(), tail.len()), (OVERSIZE_EDGE, OVERSIZE_EDGE));
            assert_eq!(data.as_ref(), b"a");
            assert_eq!(
                stream.last_id(),
                Some("3"),
                "fields of the part thrown away do not count"
            );
        }
    }

    #[test]
    fn many_lines_together_are_over_the_limit_too() {
        let text = "data: 0123456789\n".repeat(LIMIT / 10) + "\n";
        let (items, _) = read(&[text.as_bytes()]);
        assert!(
            matches!(items.as_slice(), [Item::TooLarge { .. }, Item::Skipped { .. }]),
            "{items:?}"
        );
    }

    #[test]
    fn a_comment_of_any_length_is_not_kept() {
        let text = format!(":{}\ndata: a\n\n", "c".repeat(3 * LIMIT));
        for size in [1, 1000, text.len()] {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let (items, _) = read(&pieces);
            assert_eq!(
                items,
                [Item::Event {
                    kind: Kind::Message,
                    data: Bytes::from_static(b"a")
                }]
            );
        }
    }
}
