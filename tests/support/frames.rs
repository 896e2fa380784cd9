//! LSP base protocol framing, written apart from the product's so that the two cannot share a mistake.

use std::io::{self, BufRead};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One message with its header.
pub fn encode(body: &str) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body.as_bytes());
    frame
}

/// The next body. `None` at a clean end; anything that is not exactly a frame is an error, since
/// stdout carries nothing else.
pub fn read(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut length = None;
    let mut first = true;
    loop {
        let mut line = Vec::new();
        let n_bytes = input.read_until(b'\n', &mut line)?;
        if n_bytes == 0 && first {
            return Ok(None);
        }
        first = false;
        let bad = |what: &str| {
            let text = String::from_utf8_lossy(&line).into_owned();
            io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {text:?}"))
        };
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return Err(bad("header line without CRLF"));
        };
        if line.is_empty() {
            break;
        }
        let text = std::str::from_utf8(line).map_err(|_| bad("header is not UTF-8"))?;
        let Some((name, value)) = text.split_once(": ") else {
            return Err(bad("not a header"));
        };
        if name != "Content-Length" {
            return Err(bad("a header nobody expects"));
        }
        length = Some(value.parse::<usize>().map_err(|_| bad("not a length"))?);
    }
    let Some(length) = length else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a frame without Content-Length",
        ));
    };
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    String::from_utf8(body)
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A message from Pillion. What belongs to an MCP server stays text: it may hold what `Value` cannot.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub jsonrpc: String,
    #[serde(default, deserialize_with = "present")]
    pub id: Option<Value>,
    pub method: Option<String>,
    pub params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Box<RawValue>>,
    pub error: Option<Box<RawValue>>,
}

/// `null` is a value here, unlike absence: `"result": null` answers `shutdown`.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
