//! `Content-Length` framing as a state machine: bytes in, messages and faults out. No IO.
//!
//! Whatever the bytes are, the next well-formed frame is found again: garbage before a header is dropped, a body that
//! was announced too short or too long costs that one message, and a body over the limit is passed over without being
//! stored.

use memchr::memmem;

/// One read takes at most this much, unless it goes straight into a big body.
const CHUNK: usize = 64 * 1024;
/// No header line is longer than this; what is longer is garbage.
const MAX_LINE: usize = 8 * 1024;
/// How much of an oversize body is kept from its beginning and from its end, to find the id in.
const KEPT: usize = 512;
/// A header split by the end of a chunk is found again when at least this much of the chunk is kept.
const OVERLAP: usize = 64;
const NAME: &[u8] = b"content-length";

#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// The body of one frame, not yet known to be UTF-8.
    Message(Vec<u8>),
    Fault(Fault),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// `Content-Length` without a readable number.
    Header(String),
    /// A body over the limit. `head` and `tail` are its first and last bytes, as far as they arrived.
    TooLarge {
        length: u64,
        limit: usize,
        head: Vec<u8>,
        tail: Vec<u8>,
    },
    /// A body announced too long: the next header stands inside it.
    CutShort { length: usize, body: Vec<u8> },
    /// A message on a line of its own, as the stdio transport of MCP has it.
    Unframed(Vec<u8>),
}

#[derive(Debug)]
enum State {
    Header {
        length: Option<u64>,
    },
    /// `looked`: how much of it was searched for the next header.
    Body {
        body: Vec<u8>,
        length: usize,
        looked: usize,
    },
    Skip(Skip),
}

/// A body over the limit on its way past.
#[derive(Debug)]
struct Skip {
    length: u64,
    missing: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    reported: bool,
}

#[derive(Debug)]
pub struct Framer {
    limit: usize,
    buffer: Vec<u8>,
    /// What lies before it in `buffer` is used up.
    start: usize,
    state: State,
}

impl Framer {
    pub fn new(limit: usize) -> Framer {
        Framer {
            limit,
            buffer: Vec::with_capacity(CHUNK),
            start: 0,
            state: State::Header { length: None },
        }
    }

    /// The limit for bodies whose header was not read yet.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Where the next bytes go: its spare capacity is never empty. After reading, call [`Framer::next`] until `None`.
    pub fn space(&mut self) -> &mut Vec<u8> {
        if let State::Body { body, .. } = &mut self.state {
            return body;
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.reserve(CHUNK - self.buffer.len().min(CHUNK / 2));
        &mut self.buffer
    }

    /// The next thing that is complete.
    pub fn next(&mut self) -> Option<Item> {
        loop {
            let step = match &mut self.state {
                State::Header { .. } => self.header(),
                State::Body { .. } => self.body(),
                State::Skip(_) => self.skip(),
            };
            match step {
                Step::Again => {}
                Step::Item(item) => return Some(item),
                Step::Starved => return None,
            }
        }
    }

    /// Whether it matters when nothing more comes for a while.
    pub fn may_stall(&self) -> bool {
        match &self.state {
            State::Header { .. } => false,
            State::Body { body, looked, .. } => body.len() > *looked,
            State::Skip(skip) => !skip.reported,
        }
    }

    /// Nothing more came for a while: what can be said of the body that is not complete.
    ///
    /// One that is too big is reported with what arrived of it. One that was announced too long has swallowed the
    /// messages behind it, whose senders wait for an answer: it ends where the next header stands.
    pub fn settle(&mut self) -> Option<Fault> {
        match &mut self.state {
            State::Header { .. } => None,
            State::Skip(skip) if skip.reported => None,
            State::Skip(skip) => {
                let rest = &self.buffer[self.start..];
                skip.keep(rest);
                skip.missing = skip.missing.saturating_sub(rest.len() as u64);
                self.start = self.buffer.len();
                Some(skip.report(self.limit))
            }
            State::Body { body, length, looked } => {
                *looked = body.len();
                let rest = body.split_off(next_header(body)?);
                let fault = Fault::CutShort {
                    length: *length,
                    body: std::mem::take(body),
                };
                self.buffer.splice(..self.start, rest);
                self.start = 0;
                self.state = State::Header { length: None };
                Some(fault)
            }
        }
    }

    fn header(&mut self) -> Step {
        let State::Header { length } = &mut self.state else {
            return Step::Again;
        };
        let rest = &self.buffer[self.start..];
        let Some(end) = memchr::memchr(b'\n', rest) else {
            if rest.len() > MAX_LINE {
                self.start = self.buffer.len() - OVERLAP;
            }
            return Step::Starved;
        };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        self.start += end + 1;
        if line.is_empty() {
            // Without a length the lines before were garbage.
            if let Some(length) = length.take() {
                self.begin(length);
            }
            return Step::Again;
        }
        match content_length(line) {
            None if length.is_none() && is_message(line) => {
                Step::Item(Item::Fault(Fault::Unframed(line.to_vec())))
            }
            None => Step::Again,
            Some(Ok(value)) => {
                *length = Some(value);
                Step::Again
            }
            Some(Err(text)) => {
                *length = None;
                Step::Item(Item::Fault(Fault::Header(text)))
            }
        }
    }

    /// The header of a body of `length` bytes is complete.
    fn begin(&mut self, length: u64) {
        match usize::try_from(length) {
            Ok(small) if small <= self.limit => {
                let here = small.min(self.buffer.len() - self.start);
                // The allocator hands out untouched pages, so a length that is only announced costs nothing.
                let mut body = Vec::with_capacity(small);
                body.extend_from_slice(&self.buffer[self.start..self.start + here]);
                self.start += here;
                self.state = State::Body {
                    body,
                    length: small,
                    looked: 0,
                };
            }
            _ => {
                let (head, tail) = (Vec::new(), Vec::new());
                self.state = State::Skip(Skip {
                    length,
                    missing: length,
                    head,
                    tail,
                    reported: false,
                });
            }
        }
    }

    fn body(&mut self) -> Step {
        let State::Body { body, length, .. } = &mut self.state else {
            return Step::Again;
        };
        if body.len() < *length {
            return Step::Starved;
        }
        let mut body = std::mem::take(body);
        // The allocator may have given more room than asked for, and the read used it.
        if body.len() > *length {
            let rest = body.split_off(*length);
            self.buffer.splice(..self.start, rest);
            self.start = 0;
        }
        self.state = State::Header { length: None };
        Step::Item(Item::Message(body))
    }

    fn skip(&mut self) -> Step {
        let State::Skip(skip) = &mut self.state else {
            return Step::Again;
        };
        let rest = &self.buffer[self.start..];
        let part = usize::try_from(skip.missing)
            .unwrap_or(usize::MAX)
            .min(rest.len());
        // A host that announced 10 GB by mistake goes on with its next frame. Such a header cannot be part of JSON:
        // no text in it may hold a raw line end.
        let resumed = next_header(&rest[..part]);
        let keep = match resumed {
            Some(_) => 0,
            None if part as u64 == skip.missing => 0,
            None => OVERLAP.min(part),
        };
        let used = resumed.unwrap_or(part - keep);
        skip.keep(&rest[..used]);
        skip.missing -= used as u64;
        self.start += used;
        let over = resumed.is_some() || skip.missing == 0;
        let known = skip.head.len() >= KEPT && !skip.reported && finds_id(&skip.head);
        let fault = ((over || known) && !skip.reported).then(|| skip.report(self.limit));
        if over {
            self.state = State::Header { length: None };
        }
        match fault {
            Some(fault) => Step::Item(Item::Fault(fault)),
            None if over => Step::Again,
            None => Step::Starved,
        }
    }
}

enum Step {
    Again,
    Item(Item),
    /// More bytes are needed.
    Starved,
}

impl Skip {
    fn keep(&mut self, bytes: &[u8]) {
        let room = KEPT - self.head.len();
        self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.tail
            .extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT)..]);
        let surplus = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..surplus);
    }

    fn report(&mut self, limit: usize) -> Fault {
        self.reported = true;
        Fault::TooLarge {
            length: self.length,
            limit,
            head: self.head.clone(),
            tail: self.tail.clone(),
        }
    }
}

fn finds_id(head: &[u8]) -> bool {
    super::envelope::id_in_head(head).is_some()
}

/// Whether a line where a header is expected is a message instead; what else stands there says nothing.
fn is_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"{") && line.ends_with(b"}") && memmem::find(line, b"\"jsonrpc\"").is_some()
}

/// The number of a `Content-Length` header in `line`, which may be preceded by garbage; the text where it is none.
fn content_length(line: &[u8]) -> Option<Result<u64, String>> {
    let at = line
        .windows(NAME.len())
        .rposition(|window| window.eq_ignore_ascii_case(NAME))?;
    let value = line[at + NAME.len()..]
        .trim_ascii_start()
        .strip_prefix(b":")?
        .trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Some(Err(
            String::from_utf8_lossy(&value[..value.len().min(64)]).into_owned()
        ));
    }
    let digits = value.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    Some(Ok(digits.unwrap_or(u64::MAX)))
}

/// Where in a skipped body a whole header stands.
fn next_header(bytes: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, b"\r\n\r\n").find_map(|end| {
        let from = end.saturating_sub(OVERLAP);
        let line = &bytes[from..end];
        let at = line
            .windows(NAME.len())
            .rposition(|window| window.eq_ignore_ascii_case(NAME))?;
        matches!(content_length(&line[at..]), Some(Ok(_))).then_some(from + at)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(body: &[u8]) -> Vec<u8> {
        [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
    }

    /// Feeds `bytes` in pieces of the given sizes, in turn.
    fn feed(framer: &mut Framer, mut bytes: &[u8], sizes: &[usize]) -> Vec<Item> {
        let mut items = Vec::new();
        for size in sizes.iter().cycle() {
            if bytes.is_empty() {
                return items;
            }
            let space = framer.space();
            let room = space.capacity() - space.len();
            assert!(room > 0);
            let (now, later) = bytes.split_at((*size).clamp(1, room).min(bytes.len()));
            space.extend_from_slice(now);
            bytes = later;
            items.extend(std::iter::from_fn(|| framer.next()));
        }
        items
    }

    fn all(bytes: &[u8]) -> Vec<Item> {
        feed(&mut Framer::new(1000), bytes, &[usize::MAX])
    }

    fn message(body: &str) -> Item {
        Item::Message(body.as_bytes().to_vec())
    }

    #[test]
    fn the_next_good_frame_is_found_again() {
        let good = framed(b"{}");
        let unframed = br#"{"jsonrpc":"2.0","id":1}"#;
        let rows: [(&str, Vec<u8>, Vec<Item>); 10] = [
            ("good", good.clone(), vec![message("{}")]),
            (
                "other headers",
                b"Content-Type: x\r\nCONTENT-length:2\r\n\r\n{}".to_vec(),
                vec![message("{}")],
            ),
            (
                "bare line ends",
                b"Content-Length: 2\n\n{}".to_vec(),
                vec![message("{}")],
            ),
            (
                "garbage line",
                [b"hello\r\n\r\n\n", &good[..]].concat(),
                vec![message("{}")],
            ),
            (
                "garbage without an end",
                [b"{\"a\":1}", &good[..]].concat(),
                vec![message("{}")],
            ),
            (
                "announced too short",
                [&b"Content-Length: 2\r\n\r\n{}xyz"[..], &good].concat(),
                vec![message("{}"), message("{}")],
            ),
            (
                "empty",
                [&framed(b"")[..], &good].concat(),
                vec![message(""), message("{}")],
            ),
            (
                "no number",
                [&b"Content-Length: -5\r\n\r\n"[..], &good].concat(),
                vec![Item::Fault(Fault::Header("-5".to_owned())), message("{}")],
            ),
            (
                "a line that is a message",
                [&unframed[..], b"\n", &good].concat(),
                vec![Item::Fault(Fault::Unframed(unframed.to_vec())), message("{}")],
            ),
            (
                "endless line",
                [&vec![b'x'; 3 * MAX_LINE][..], &good].concat(),
                vec![message("{}")],
            ),
        ];
        for (name, bytes, expected) in rows {
            assert_eq!(all(&bytes), expected, "{name}");
            assert_eq!(
                feed(&mut Framer::new(1000), &bytes, &[1]),
                expected,
                "{name}, byte by byte"
            );
        }
    }

    #[test]
    fn an_oversize_body_is_passed_over_and_its_ends_are_kept() {
        let body = format!("{{\"id\":7,\"x\":\"{}\"}}", "y".repeat(5000));
        let bytes = [&framed(body.as_bytes())[..], &framed(b"{}")].concat();
        for sizes in [[usize::MAX], [1], [700]] {
            let items = feed(&mut Framer::new(1000), &bytes, &sizes);
            let [
                Item::Fault(Fault::TooLarge {
                    length,
                    limit: 1000,
                    head,
                    ..
                }),
                last,
            ] = &items[..]
            else {
                panic!("{items:?}")
            };
            assert_eq!(*length, body.len() as u64);
            assert_eq!(head[..], body.as_bytes()[..KEPT]);
            assert_eq!(*last, message("{}"));
        }
    }

    #[test]
    fn after_a_length_nobody_sends_the_next_frame_counts() {
        let mut framer = Framer::new(1000);
        for length in ["99999999999", "99999999999999999999999999"] {
            let announced = format!("Content-Length: {length}\r\n\r\n");
            assert_eq!(feed(&mut framer, announced.as_bytes(), &[usize::MAX]), []);
            assert!(framer.may_stall());
            assert!(matches!(framer.settle(), Some(Fault::TooLarge { .. })));
            assert!(!framer.may_stall());
            assert_eq!(feed(&mut framer, &framed(b"{}"), &[usize::MAX]), [message("{}")]);
        }
    }

    #[test]
    fn a_stall_ends_what_was_announced_too_long() {
        let mut framer = Framer::new(1000);
        let bytes = [
            &b"Content-Length: 900\r\n\r\n{\"id\":1}"[..],
            &framed(b"{}"),
            &framed(b"[]"),
        ]
        .concat();
        assert_eq!(feed(&mut framer, &bytes, &[7]), []);
        let body = b"{\"id\":1}".to_vec();
        assert_eq!(framer.settle(), Some(Fault::CutShort { length: 900, body }));
        assert_eq!(framer.next(), Some(message("{}")));
        assert_eq!(framer.next(), Some(message("[]")));
        // One that is just slow is waited for.
        assert_eq!(feed(&mut framer, b"Content-Length: 4\r\n\r\n{ ", &[9]), []);
        assert!(framer.may_stall());
        assert_eq!(framer.settle(), None);
        assert!(!framer.may_stall());
        assert_eq!(feed(&mut framer, b" }", &[1]), [message("{  }")]);
    }

    #[test]
    fn an_oversize_body_that_stalls_is_reported_with_what_came() {
        let mut framer = Framer::new(1000);
        feed(
            &mut framer,
            b"Content-Length: 10737418240\r\n\r\n{\"id\":7}",
            &[usize::MAX],
        );
        let Some(Fault::TooLarge { head, tail, .. }) = framer.settle() else {
            panic!("no fault")
        };
        assert_eq!((&head[..], &tail[..]), (&b"{\"id\":7}"[..], &b"{\"id\":7}"[..]));
        assert_eq!(feed(&mut framer, &framed(b"{}"), &[5]), [message("{}")]);
    }

    proptest! {
        #[test]
        fn any_split_of_any_frames_gives_the_same_messages(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..900), 0..20),
            sizes in prop::collection::vec(1_usize..400, 1..20),
        ) {
            let bytes: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
            let expected: Vec<Item> = bodies.into_iter().map(Item::Message).collect();
            prop_assert_eq!(feed(&mut Framer::new(1000), &bytes, &sizes), expected);
        }

        #[test]
        fn no_bytes_stop_it(
            garbage in prop::collection::vec(any::<u8>(), 0..3000),
            sizes in prop::collection::vec(1_usize..400, 1..20),
        ) {
            let mut framer = Framer::new(100);
            feed(&mut framer, &garbage, &sizes);
            // Whatever state that left: a message longer than any body it may wait for, then a good one.
            feed(&mut framer, &[&vec![b' '; 200][..], b"\r\n\r\n"].concat(), &sizes);
            let items = feed(&mut framer, &framed(b"{}"), &sizes);
            prop_assert_eq!(items.last(), Some(&message("{}")));
        }
    }
}
