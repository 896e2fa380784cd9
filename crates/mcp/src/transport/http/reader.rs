//! Reads the events of one response and hands messages to the inbox.

use bytes::Bytes;
use reqwest::Response;

use super::exchange;
use crate::transport::Inbox;
use crate::transport::event_stream::{EventStream, Item};

/// From this size on the inbox gets the buffer itself instead of a look at it.
const BIG: usize = 64 * 1024;

/// The next event; `None` when the response is over, whether properly or not.
/// Nothing is lost when the future is dropped.
pub(crate) async fn next(response: &mut Response, stream: &mut EventStream) -> Option<Item> {
    loop {
        if let Some(item) = stream.next() {
            return Some(item);
        }
        stream.push(exchange::next_chunk(response).await.ok()??);
    }
}

pub(crate) fn hand_over(inbox: &dyn Inbox, text: Bytes, origin: Option<u64>) {
    if text.len() < BIG {
        inbox.message(&text, origin);
    } else {
        inbox.big_message(Vec::from(text), origin);
    }
}
