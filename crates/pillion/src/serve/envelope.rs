//! The outside of a JSON-RPC message: what it is, its id as it came, and its parameters as text.
//!
//! Nothing inside `params`, `result` and `error` is looked at. Where a message is broken, its id is still found if it
//! can be read at all, since a host waits for the answer to it.

use std::borrow::Cow;
use std::fmt;

use protocol::{Error, ErrorKind};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A longer id is no id.
const MAX_ID: usize = 1024;

/// A request id, written back exactly as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(Box<str>);

impl Id {
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Two spellings of one string are one id.
    pub fn key(&self) -> Cow<'_, str> {
        if self.0.contains('\\')
            && let Ok(decoded) = serde_json::from_str::<String>(&self.0)
        {
            return Cow::Owned(format!("\"{decoded}\""));
        }
        Cow::Borrowed(&self.0)
    }

    /// `text` is JSON.
    pub fn new(text: &str) -> Option<Id> {
        let fits =
            text.len() <= MAX_ID && text.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
        fits.then(|| Id(text.into()))
    }
}

/// One message, borrowed from its frame.
#[derive(Debug)]
pub enum Message<'a> {
    Request {
        id: Id,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// The answer to a request of ours; the result where it worked. Whatever its id is, it gets no answer.
    Response {
        id: Option<Id>,
        result: Option<&'a RawValue>,
    },
}

/// A message that cannot be carried out, and whom to tell.
#[derive(Debug)]
pub struct Refused {
    pub id: Option<Id>,
    pub error: Error,
}

/// Reads the body of one frame.
pub fn read(body: &[u8]) -> Result<Message<'_>, Refused> {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(fault) => {
            let id = members(&String::from_utf8_lossy(body)).0.id.and_then(Id::new);
            let message = format!("the message is not UTF-8 (byte {})", fault.valid_up_to());
            return Err(refused(id, ErrorKind::ParseError, message));
        }
    };
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'[') => {
            let message = "batches are not supported".to_owned();
            return Err(refused(None, ErrorKind::InvalidRequest, message));
        }
        Some(b'{') | None => {}
        Some(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
            let message = "a message is a JSON object".to_owned();
            return Err(refused(None, ErrorKind::InvalidRequest, message));
        }
        Some(_) => {}
    }
    let (members, outcome) = members(text);
    let id = members.id.and_then(Id::new);
    if let Err(fault) = outcome {
        return Err(refused(
            id,
            ErrorKind::ParseError,
            format!("the message is not a JSON object: {fault}"),
        ));
    }
    if members.method.is_none() && (members.result.is_some() || members.failed) {
        return Ok(Message::Response {
            id,
            result: members.result,
        });
    }
    let invalid = |message: String| Err(refused(id.clone(), ErrorKind::InvalidRequest, message));
    if let Some(name) = members.twice {
        return invalid(format!("`{name}` stands twice in the message"));
    }
    if members.jsonrpc != Some("\"2.0\"") {
        return invalid("`jsonrpc` must be \"2.0\"".to_owned());
    }
    if members.id.is_some() && id.is_none() {
        return invalid("`id` must be a string or a number".to_owned());
    }
    let Some(method) = members.method else {
        return invalid("`method` is missing".to_owned());
    };
    let Ok(method) = serde_json::from_str::<Text<'_>>(method).map(|text| text.0) else {
        return invalid("`method` must be a string".to_owned());
    };
    Ok(match id {
        Some(id) => Message::Request {
            id,
            method,
            params: members.params,
        },
        None => Message::Notification {
            method,
            params: members.params,
        },
    })
}

/// The id of a message of which only the beginning is known.
pub fn id_in_head(head: &[u8]) -> Option<Id> {
    members(text_before_fault(head)).0.id.and_then(Id::new)
}

/// The id of a message of which only the end is known: after some comma, the rest is an object without its beginning.
pub fn id_in_tail(tail: &[u8]) -> Option<Id> {
    memchr::memchr_iter(b',', tail).find_map(|comma| {
        let object = [b"{", &tail[comma + 1..]].concat();
        let (members, outcome) = members(std::str::from_utf8(&object).ok()?);
        outcome.ok()?;
        members.id.and_then(Id::new)
    })
}

fn text_before_fault(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(fault) => std::str::from_utf8(&bytes[..fault.valid_up_to()]).unwrap_or_default(),
    }
}

fn refused(id: Option<Id>, kind: ErrorKind, message: String) -> Refused {
    Refused {
        id,
        error: Error::new(kind, message).hint("send one JSON-RPC message per frame"),
    }
}

/// A string that is borrowed unless it holds escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members as far as the text could be read.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    failed: bool,
    twice: Option<&'static str>,
}

fn members(text: &str) -> (Members<'_>, Result<(), serde_json::Error>) {
    let mut members = Members::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = deserializer
        .deserialize_map(Reader(&mut members))
        .and_then(|()| deserializer.end());
    (members, outcome)
}

struct Reader<'m, 'a>(&'m mut Members<'a>);

impl<'a> Visitor<'a> for Reader<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let members = self.0;
        while let Some(Text(name)) = map.next_key()? {
            let (name, slot) = match &*name {
                "jsonrpc" => ("jsonrpc", &mut members.jsonrpc),
                "id" => ("id", &mut members.id),
                "method" => ("method", &mut members.method),
                "params" => {
                    let value = map.next_value()?;
                    if members.params.replace(value).is_some() {
                        members.twice = Some("params");
                    }
                    continue;
                }
                "result" => {
                    members.result = Some(map.next_value()?);
                    continue;
                }
                other => {
                    members.failed |= other == "error";
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value: &RawValue = map.next_value()?;
            // The first one counts, so that the answer goes to the id a reader of the wire sees first.
            if slot.is_none() {
                *slot = Some(value.get());
            } else {
                members.twice = Some(name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> String {
        match read(text.as_bytes()) {
            Ok(Message::Request { id, method, params }) => {
                format!(
                    "request {} {method} {}",
                    id.text(),
                    params.map_or("-", RawValue::get)
                )
            }
            Ok(Message::Notification { method, params }) => {
                format!("notification {method} {}", params.map_or("-", RawValue::get))
            }
            Ok(Message::Response { id, result }) => {
                let id = id.as_ref().map_or("-", Id::text);
                format!("response {id} {}", result.map_or("failed", RawValue::get))
            }
            Err(Refused { id, error }) => {
                format!("{} {}", error.kind.as_str(), id.as_ref().map_or("-", Id::text))
            }
        }
    }

    #[test]
    fn what_a_message_is() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let rows = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1.10]}}"#,
                r#"request 1 a {"x":[1.10]}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a\u0062","method":"a"}"#,
                r#"request "a\u0062" a -"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"a"}"#,
                "request 123456789012345678901234567890 a -",
            ),
            (
                r#"{"jsonrpc":"2.0","id":-1.50,"method":"a","params":null}"#,
                "request -1.50 a null",
            ),
            (
                r#"{"method":"\u0061","jsonrpc":"2.0","future":{}}"#,
                "notification a -",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1000001,"result":{"success":true}}"#,
                r#"response 1000001 {"success":true}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1000001,"result":null}"#,
                "response 1000001 null",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1000001,"error":{"code":1}}"#,
                "response 1000001 failed",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#,
                "response - failed",
            ),
            ("[]", "invalid_request -"),
            (r#" [{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "invalid_request -"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "invalid_request -"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "invalid_request -"),
            (r#"{"jsonrpc":"2.0","id":3}"#, "invalid_request 3"),
            (r#"{"jsonrpc":"2.0","id":3,"method":7}"#, "invalid_request 3"),
            (r#"{"jsonrpc":"1.0","id":3,"method":"a"}"#, "invalid_request 3"),
            (r#"{"id":"x","method":"a"}"#, r#"invalid_request "x""#),
            (
                r#"{"jsonrpc":"2.0","id":3,"id":4,"method":"a"}"#,
                "invalid_request 3",
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"method":"a","method":"b"}"#,
                "invalid_request 3",
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"method":"a","params":{},"params":{}}"#,
                "invalid_request 3",
            ),
            (r#"{"jsonrpc":"2.0","id":3,"method":"a",}"#, "parse_error 3"),
            (r#"{"jsonrpc":"2.0","id":3,"method":"a"} x"#, "parse_error 3"),
            ("", "parse_error -"),
            ("7", "invalid_request -"),
            ("null", "invalid_request -"),
            ("nonsense", "parse_error -"),
            ("{", "parse_error -"),
        ];
        for (text, expected) in rows {
            assert_eq!(shape(text), expected, "{text}");
        }
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{deep}}}"#);
        assert_eq!(shape(&text), format!("request 1 a {deep}"));
    }

    #[test]
    fn invalid_utf8_keeps_the_id() {
        let body = b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}";
        let refused = read(body).unwrap_err();
        assert_eq!(refused.id.unwrap().text(), "5");
        assert_eq!(refused.error.kind, ErrorKind::ParseError);
    }

    #[test]
    fn an_id_in_what_is_left_of_a_message() {
        let head = |text: &str| id_in_head(text.as_bytes()).map(|id| id.text().to_owned());
        assert_eq!(
            head(r#"{"jsonrpc":"2.0","id":5,"method":"mcp.too"#).as_deref(),
            Some("5")
        );
        assert_eq!(head(r#"{"params":{"id":5,"x":"yyy"#), None);
        let tail = |text: &str| id_in_tail(text.as_bytes()).map(|id| id.text().to_owned());
        assert_eq!(
            tail(r#"yy,y"}},"id":"a","jsonrpc":"2.0"}"#).as_deref(),
            Some("\"a\"")
        );
        assert_eq!(tail(r#"yy","id":5}}"#), None);
        assert_eq!(tail(r#"yy","method":"x"}"#), None);
    }

    #[test]
    fn one_id_in_two_spellings() {
        let id = |text| Id::new(text).unwrap();
        assert_eq!(id(r#""a\u0062""#).key(), id(r#""ab""#).key());
        assert_ne!(id(r#""1""#).key(), id("1").key());
    }
}
