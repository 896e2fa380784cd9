//! Frames on their way out: header and body in one buffer.
//!
//! A result is serialised straight into its frame, whose header is filled in afterwards, so that ten megabytes are
//! written once and copied no more.

use std::io::Write;

use protocol::{Error, ErrorKind, Notification};
use serde::Serialize;

use super::envelope::Id;

/// Room for `Content-Length: `, the digits of any length, and the empty line.
const HEADER: usize = 40;

/// What a frame is given to begin with: enough for most.
const SMALL: usize = 256;

#[derive(Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    start: usize,
}

impl Frame {
    /// The answer to a request that was carried out.
    pub fn result<T: Serialize>(id: &Id, result: &T) -> Frame {
        let mut bytes = open(&[r#""id":"#, id.text(), r#","result":"#]);
        match serde_json::to_writer(&mut bytes, result) {
            Ok(()) => close(bytes),
            Err(fault) => {
                tracing::error!(%fault, "a result could not be serialised");
                Frame::error(
                    Some(id),
                    &Error::new(ErrorKind::Internal, "the result could not be written down"),
                )
            }
        }
    }

    /// The answer to a request that was not; without an id where none could be read.
    pub fn error(id: Option<&Id>, error: &Error) -> Frame {
        let mut bytes = open(&[r#""id":"#, id.map_or("null", Id::text), r#","error":"#]);
        if serde_json::to_writer(&mut bytes, error).is_err() {
            // An error holds text, numbers and raw JSON only, none of which fails.
            tracing::error!(kind = error.kind.as_str(), "an error could not be serialised");
        }
        close(bytes)
    }

    pub fn notification(notification: &Notification) -> Frame {
        let params = notification.params_json();
        let mut bytes = open(&[r#""method":""#, notification.method(), r#"","params":"#]);
        bytes.extend_from_slice(params.as_bytes());
        close(bytes)
    }

    /// A request to the host.
    pub fn request(id: u64, method: &str, params: &serde_json::Value) -> Frame {
        let params = params.to_string();
        let id = id.to_string();
        close(open(&[
            r#""id":"#,
            &id,
            r#","method":""#,
            method,
            r#"","params":"#,
            &params,
        ]))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The memory it takes until it is written, which for a small frame is not its length.
    pub fn cost(&self) -> usize {
        self.bytes.len().max(SMALL) + size_of::<Frame>()
    }
}

fn open(parts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SMALL);
    bytes.resize(HEADER, b' ');
    bytes.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    for part in parts {
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

fn close(mut bytes: Vec<u8>) -> Frame {
    bytes.push(b'}');
    let length = bytes.len() - HEADER;
    let digits = length.checked_ilog10().unwrap_or(0) as usize + 1;
    let start = HEADER - "Content-Length: \r\n\r\n".len() - digits;
    let mut header = &mut bytes[start..HEADER];
    // The slice is as long as the text: nothing can fail here.
    let _ = write!(header, "Content-Length: {length}\r\n\r\n");
    Frame { bytes, start }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_counts_bytes() {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1000001,"method":"m","params":"{}"}}"#,
            "ü".repeat(30)
        );
        let frame = Frame::request(1_000_001, "m", &serde_json::Value::String("ü".repeat(30)));
        let expected = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(std::str::from_utf8(frame.bytes()).unwrap(), expected);
        assert_eq!(frame.len(), expected.len());
    }
}
