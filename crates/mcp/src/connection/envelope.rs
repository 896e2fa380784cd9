//! JSON-RPC messages: read as envelopes only, written by joining text.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::members;

/// What one message is.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    Response {
        id: Option<u64>,
        outcome: Outcome<'a>,
    },
    Request {
        id: &'a RawValue,
        method: String,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: String,
        params: Option<&'a RawValue>,
    },
    /// Parsed, but no message; the text says what is wrong with it.
    Malformed(&'static str),
}

#[derive(Debug)]
pub(crate) enum Outcome<'a> {
    Result(&'a RawValue),
    Error(RpcError),
}

/// The error object of a response.
#[derive(Clone, Debug)]
pub(crate) struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from a missing member.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one message, or each message of a batch. An error means that the text is not JSON, or not JSON-RPC in any way.
pub(crate) fn parse(text: &[u8], mut each: impl FnMut(Incoming<'_>)) -> Result<(), serde_json::Error> {
    if text.trim_ascii_start().starts_with(b"[") {
        for element in serde_json::from_slice::<Vec<&RawValue>>(text)? {
            match serde_json::from_str(element.get()) {
                Ok(envelope) => each(classify(&envelope)),
                Err(_) => each(Incoming::Malformed("a member of a batch is no message")),
            }
        }
        return Ok(());
    }
    each(classify(&serde_json::from_slice(text)?));
    Ok(())
}

fn classify<'a>(envelope: &Envelope<'a>) -> Incoming<'a> {
    let id = envelope.id.filter(|id| id.get() != "null");
    if let Some(method) = envelope.method {
        let Some(method) = members::string(method.get()) else {
            return Incoming::Malformed("`method` is not a string");
        };
        let method = method.into_owned();
        let params = envelope.params.filter(|params| params.get() != "null");
        return match (id, envelope.id) {
            (Some(id), _) => Incoming::Request { id, method, params },
            (None, Some(_)) => Incoming::Malformed("a request has the id `null`"),
            (None, None) => Incoming::Notification { method, params },
        };
    }
    let error = envelope.error.filter(|error| error.get() != "null");
    let outcome = match (envelope.result, error) {
        (Some(result), None) => Outcome::Result(result),
        (None, Some(error)) => Outcome::Error(RpcError::parse(error)),
        (Some(result), Some(error)) if result.get() == "null" => Outcome::Error(RpcError::parse(error)),
        (Some(_), Some(_)) => return Incoming::Malformed("a response has both a result and an error"),
        (None, None) => return Incoming::Malformed("neither a request nor a response"),
    };
    Incoming::Response {
        id: id.and_then(our_id),
        outcome,
    }
}

impl RpcError {
    /// Servers send codes as strings or leave the message out: what can be understood is kept.
    pub(crate) fn parse(error: &RawValue) -> RpcError {
        let text = error.get();
        let code = members::member(text, "code").and_then(integer).unwrap_or(-32603);
        let message = match members::member(text, "message").and_then(members::string) {
            Some(message) => message.into_owned(),
            None => members::string(text).map_or_else(|| "the server reported an error".into(), Into::into),
        };
        let data = members::member(text, "data")
            .filter(|data| *data != "null")
            .map(members::raw);
        RpcError { code, message, data }
    }
}

fn integer(text: &str) -> Option<i64> {
    let text = text.trim_matches('"');
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number = text.parse::<f64>().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "bounded just before")]
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// Ids from here on are written as strings: those of probes, so that a late answer is never taken for another one.
pub(crate) const PROBE: u64 = 1 << 62;
const PROBE_PREFIX: &str = "probe-";

/// Where in a response its result stands, and whose answer it is. `None` for anything but one plain response.
pub(crate) fn place_of_result(text: &[u8]) -> Option<(u64, Range<usize>)> {
    let envelope: Envelope<'_> = serde_json::from_slice(text).ok()?;
    let (Some(id), Some(result), None, None) =
        (envelope.id, envelope.result, envelope.method, envelope.error)
    else {
        return None;
    };
    let start = result.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    Some((our_id(id)?, start..start + result.get().len()))
}

/// One of our ids, in whatever form the server repeats it: `1`, `1.0` or `"1"`.
pub(crate) fn our_id(id: &RawValue) -> Option<u64> {
    let text = id.get().trim_matches('"');
    if let Some(probe) = text.strip_prefix(PROBE_PREFIX) {
        return probe.parse::<u64>().ok()?.checked_add(PROBE);
    }
    if let Ok(id) = text.parse() {
        return Some(id);
    }
    integer(text).and_then(|id| u64::try_from(id).ok())
}

/// An id as it stands in a message.
pub(crate) fn push_id(text: &mut Vec<u8>, id: u64) {
    use std::io::Write;
    // Writing to a Vec cannot fail.
    let _ = match id.checked_sub(PROBE) {
        Some(probe) => write!(text, "\"{PROBE_PREFIX}{probe}\""),
        None => write!(text, "{id}"),
    };
}

/// A request or notification whose params are ready.
pub(crate) fn call(id: Option<u64>, method: &str, params: &[&str]) -> Vec<u8> {
    let length: usize = params.iter().map(|part| part.len()).sum();
    let mut text = Vec::with_capacity(length + method.len() + 72);
    text.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        text.extend_from_slice(br#""id":"#);
        push_id(&mut text, id);
        text.push(b',');
    }
    text.extend_from_slice(br#""method":""#);
    text.extend_from_slice(method.as_bytes());
    text.push(b'"');
    if length > 0 {
        text.extend_from_slice(br#","params":"#);
        for part in params {
            text.extend_from_slice(part.as_bytes());
        }
    }
    text.push(b'}');
    text
}

/// The answer to a server's request, with its id as it came.
pub(crate) fn result(id: &RawValue, result: &RawValue) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
        id.get(),
        result.get()
    )
    .into_bytes()
}

pub(crate) fn error(id: &RawValue, code: i64, message: &str) -> Vec<u8> {
    let message = quoted(message);
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":{message}}}}}"#,
        id.get()
    )
    .into_bytes()
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Looks for one of our ids at the edges of a response that was too large to keep.
pub(crate) fn id_at_edges(head: &[u8], tail: Option<&[u8]>) -> Option<u64> {
    id_in_head(head).or_else(|| id_in_tail(tail?))
}

/// Whether an oversize message is a request or notification of the server, as far as its beginning tells.
pub(crate) fn is_call(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    members::members(&head).any(|member| member.is("method"))
}

/// The id stands before the result: the last member of the cut text may be incomplete and is not looked at.
fn id_in_head(head: &[u8]) -> Option<u64> {
    let head = String::from_utf8_lossy(head);
    let found = members::members(&head).find(|member| member.is("id"))?;
    (found.span.1 < head.len()).then(|| our_id(&members::raw(found.value)))?
}

/// The id stands after the result: only `jsonrpc` may follow, and then exactly one closing brace.
fn id_in_tail(tail: &[u8]) -> Option<u64> {
    let at = memchr::memmem::rfind(tail, b"\"id\"")?;
    let rest = std::str::from_utf8(&tail[at..]).ok()?;
    let object = format!("{{{rest}");
    let envelope: Envelope<'_> = serde_json::from_str(&object).ok()?;
    our_id(envelope.id?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        let parsed = parse(text.as_bytes(), |message| {
            seen.push(match message {
                Incoming::Response {
                    id,
                    outcome: Outcome::Result(result),
                } => format!("result {id:?} {result}"),
                Incoming::Response {
                    id,
                    outcome: Outcome::Error(error),
                } => {
                    format!(
                        "error {id:?} {} {} {:?}",
                        error.code,
                        error.message,
                        error.data.map(|data| data.to_string())
                    )
                }
                Incoming::Request { id, method, params } => format!("request {id} {method} {params:?}"),
                Incoming::Notification { method, .. } => format!("notification {method}"),
                Incoming::Malformed(why) => format!("malformed: {why}"),
            });
        });
        if parsed.is_err() {
            seen.push("not JSON-RPC".into());
        }
        seen
    }

    #[test]
    fn envelopes() {
        let check = |text, expected: &[&str]| assert_eq!(show(text), expected, "{text}");
        check(
            r#"{"jsonrpc":"2.0","id":7,"result":{"b":1.10,"a":1e400,"a":"\ud800"}}"#,
            &[r#"result Some(7) {"b":1.10,"a":1e400,"a":"\ud800"}"#],
        );
        check(r#"{"id":"7","result":null}"#, &["result Some(7) null"]);
        check(r#"{"id":7.0,"result":1,"extra":[]}"#, &["result Some(7) 1"]);
        check(r#"{"id":"x","result":1}"#, &["result None 1"]);
        check(
            r#"{"id":"probe-1","result":1}"#,
            &["result Some(4611686018427387905) 1"],
        );
        check(
            r#"{"id":1,"result":null,"error":{"code":-1,"message":"m","data":[2]}}"#,
            &[r#"error Some(1) -1 m Some("[2]")"#],
        );
        check(
            r#"{"id":1,"error":{"code":"-5"}}"#,
            &["error Some(1) -5 the server reported an error None"],
        );
        check(
            r#"{"id":1,"error":"broken"}"#,
            &["error Some(1) -32603 broken None"],
        );
        check(
            r#"{"id":null,"error":{"code":-32700,"message":"p"}}"#,
            &["error None -32700 p None"],
        );
        check(
            r#"{"id":1,"result":1,"error":{}}"#,
            &["malformed: a response has both a result and an error"],
        );
        check(r#"{"id":1}"#, &["malformed: neither a request nor a response"]);
        check(
            r#"{"id":null,"method":"m"}"#,
            &["malformed: a request has the id `null`"],
        );
        check(r#"{"method":"m","params":null}"#, &["notification m"]);
        check(r#"{"method":5}"#, &["malformed: `method` is not a string"]);
        check(
            r#"[{"method":"a"},3,{"id":1,"result":2}]"#,
            &[
                "notification a",
                "malformed: a member of a batch is no message",
                "result Some(1) 2",
            ],
        );
        check("[]", &[]);
        check("[INFO] listening", &["not JSON-RPC"]);
        check("{oops", &["not JSON-RPC"]);
    }

    #[test]
    fn a_deep_result_passes() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(
            show(&format!(r#"{{"id":1,"result":{deep}}}"#)),
            [format!("result Some(1) {deep}")]
        );
    }

    #[test]
    fn the_place_of_a_result() {
        let text = br#" {"id":"7", "result" : [1.10] ,"jsonrpc":"2.0"}"#;
        let (id, range) = place_of_result(text).expect("a response");
        assert_eq!((id, &text[range]), (7, &b"[1.10]"[..]));
        assert!(place_of_result(br#"{"id":7,"method":"m"}"#).is_none());
        assert!(place_of_result(br#"{"id":7,"result":1,"error":{}}"#).is_none());
        assert!(place_of_result(b"[]").is_none());
    }

    #[test]
    fn ids_at_the_edges() {
        let check = |head: &str, tail: &str, expected| {
            assert_eq!(
                id_at_edges(head.as_bytes(), Some(tail.as_bytes())),
                expected,
                "{head} … {tail}"
            );
        };
        check(
            r#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"te"#,
            r#"xxx"}]}}"#,
            Some(12),
        );
        check(r#"{"id":"12","result":{"id":5,"#, r#"xxx"}]}}"#, Some(12));
        check(
            r#"{"result":{"id":5,"#,
            r#"xxx"}]},"jsonrpc":"2.0","id":12}"#,
            Some(12),
        );
        check(
            r#"{"result":{"id":5,"#,
            r#"xxx"}]},"id":12,"jsonrpc":"2.0"}"#,
            Some(12),
        );
        check(r#"{"result":{"id":5,"#, r#"xxx"}],"id":12}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":12"#, r#"xxx"}]}}"#, None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(id in 1u64..1 << 53, method in "[a-z/]{1,20}", number in any::<f64>()) {
            let params = format!(r#"{{"n":{}}}"#, if number.is_finite() { number } else { 0.0 });
            let text = call(Some(id), &method, &[&params]);
            let seen = show(std::str::from_utf8(&text)?);
            let raw = members::raw(&params);
            prop_assert_eq!(seen, [format!("request {id} {method} {:?}", Some(&*raw))]);
        }

        #[test]
        fn nothing_panics(text in any::<Vec<u8>>(), cut in 0usize..100) {
            let _ = parse(&text, |_| ());
            let valid = br#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"text":"\u00e4\\"}]}}"#;
            let cut = cut.min(valid.len());
            let _ = parse(&valid[..cut], |_| ());
            id_at_edges(&valid[..cut], Some(&valid[cut..]));
            id_at_edges(&text, Some(&text));
        }
    }
}
