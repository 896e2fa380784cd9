//! `Content-Length` framing. The binary is no library, so the two files are taken in as they are.
#![no_main]

#[path = "../../../crates/pillion/src/serve/envelope.rs"]
#[allow(dead_code, reason = "only the identifier of a message is looked for")]
mod envelope;
#[path = "../../../crates/pillion/src/serve/framing.rs"]
#[allow(dead_code, reason = "the limit is not changed")]
mod framing;

use framing::{Fault, Framer, Item};

const LIMIT: usize = 1000;

// The first byte says in which pieces the bytes come.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((piece, bytes)) = data.split_first() else {
        return;
    };
    let piece = usize::from(*piece) + 1;
    let mut framer = Framer::new(LIMIT);
    let items = feed(&mut framer, bytes, piece);
    assert_eq!(
        items,
        feed(&mut Framer::new(LIMIT), bytes, piece),
        "reading is not repeatable"
    );
    let mut held = 0;
    for item in &items {
        held += match item {
            Item::Message(body) => {
                assert!(body.len() <= LIMIT);
                body.len()
            }
            Item::Fault(Fault::TooLarge { length, .. }) => {
                assert!(*length > LIMIT as u64);
                0
            }
            Item::Fault(Fault::Unframed(line)) => line.len(),
            Item::Fault(Fault::Header(_) | Fault::CutShort { .. }) => 0,
        };
    }
    assert!(held <= bytes.len(), "more came out than went in");
    // Whatever state that left: the end of a header without its number, more than any body it may wait for, then a good
    // frame.
    for filling in [&b"\r\n\r\n"[..], &[b' '; LIMIT + 200], b"\r\n\r\n"] {
        feed(&mut framer, filling, piece);
    }
    // The end of a body over the limit may lie in the middle of a frame, which is lost with it; the next one is not.
    // What a body that was announced too long has swallowed comes out after a pause.
    let good = b"Content-Length: 2\r\n\r\n{}".repeat(2);
    let mut items = feed(&mut framer, &good, piece);
    framer.settle();
    items.extend(std::iter::from_fn(|| framer.next()));
    let last = items.pop();
    assert_eq!(
        last,
        Some(Item::Message(b"{}".to_vec())),
        "the next good frame is lost"
    );
});

fn feed(framer: &mut Framer, mut bytes: &[u8], piece: usize) -> Vec<Item> {
    let mut items = Vec::new();
    while !bytes.is_empty() {
        let space = framer.space();
        let room = space.capacity() - space.len();
        assert!(room > 0, "there is no room for more");
        let (now, later) = bytes.split_at(piece.min(room).min(bytes.len()));
        space.extend_from_slice(now);
        bytes = later;
        items.extend(std::iter::from_fn(|| framer.next()));
    }
    items
}
