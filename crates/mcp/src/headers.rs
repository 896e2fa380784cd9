//! HTTP headers of the modern era that repeat parts of a message: `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*`
//! (revision 2026-07-28, streamable HTTP; `x-mcp-header` of tools).
//!
//! Pure functions from raw JSON to headers. Legacy connections and stdio use none of this.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The annotation of a property whose argument is repeated in a header.
const ANNOTATION: &str = "x-mcp-header";

/// Integers beyond this lose digits in servers that read numbers as doubles.
const LARGEST_INTEGER: i64 = (1 << 53) - 1;

/// The headers that name a request: its method and, for some methods, what it is about.
pub(crate) fn standard(method: &str, params: &RawValue) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = vec![(METHOD, encode(method))];
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return headers,
    };
    let name = members(params).and_then(|mut members| members.remove(member));
    if let Some(name) = name.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok()) {
        headers.push((NAME, encode(&name)));
    }
    headers
}

/// Which arguments of a tool are repeated in headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolHeaders {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    header: HeaderName,
    /// The chain of property names from the arguments object down.
    path: Vec<String>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Boolean,
}

impl ToolHeaders {
    /// Reads the annotations of an `inputSchema`. The error says why the tool must not be offered.
    pub fn from_schema(schema: &RawValue) -> Result<ToolHeaders, String> {
        let text = schema.get();
        // Nearly every schema. A name of plain letters may also be written with escapes.
        if !text.contains(ANNOTATION) && !text.contains("\\u") {
            return Ok(ToolHeaders::default());
        }
        let Ok(schema) = serde_json::from_str::<Value>(text) else {
            return if text.contains(ANNOTATION) {
                Err(format!("its input schema has `{ANNOTATION}` and cannot be read"))
            } else {
                Ok(ToolHeaders::default())
            };
        };
        let mut headers = ToolHeaders::default();
        headers.walk(&schema, &mut Vec::new(), true)?;
        Ok(headers)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The headers for one call. An argument that is absent, null or not of the type its schema says has none.
    pub(crate) fn of_arguments(&self, arguments: Option<&RawValue>) -> Vec<(HeaderName, HeaderValue)> {
        let Some(arguments) = arguments else {
            return Vec::new();
        };
        self.entries
            .iter()
            .filter_map(|entry| {
                let value = text_of(at_path(arguments, &entry.path)?, entry.kind)?;
                Some((entry.header.clone(), encode(&value)))
            })
            .collect()
    }

    /// `plain` is true where only `properties` led here: nowhere else may an annotation stand.
    fn walk(&mut self, schema: &Value, path: &mut Vec<String>, plain: bool) -> Result<(), String> {
        let Value::Object(members) = schema else {
            return Ok(());
        };
        if let Some(annotation) = members.get(ANNOTATION) {
            self.annotate(annotation, members.get("type"), path, plain)?;
        }
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        path.push(name.clone());
                        self.walk(property, path, plain)?;
                        path.pop();
                    }
                }
                (
                    "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
                    Value::Object(schemas),
                ) => {
                    for schema in schemas.values() {
                        self.walk(schema, path, false)?;
                    }
                }
                ("prefixItems" | "items" | "oneOf" | "anyOf" | "allOf", Value::Array(schemas)) => {
                    for schema in schemas {
                        self.walk(schema, path, false)?;
                    }
                }
                (
                    "items"
                    | "additionalItems"
                    | "unevaluatedItems"
                    | "contains"
                    | "additionalProperties"
                    | "unevaluatedProperties"
                    | "propertyNames"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contentSchema",
                    schema,
                ) => self.walk(schema, path, false)?,
                // Everything else holds values, not schemas.
                _ => {}
            }
        }
        Ok(())
    }

    fn annotate(
        &mut self,
        annotation: &Value,
        kind: Option<&Value>,
        path: &[String],
        plain: bool,
    ) -> Result<(), String> {
        let place = if path.is_empty() {
            "the root".to_owned()
        } else {
            format!("`{}`", path.join("."))
        };
        let Value::String(name) = annotation else {
            return Err(format!("`{ANNOTATION}` of {place} is not a string"));
        };
        if !plain || path.is_empty() {
            return Err(format!(
                "`{ANNOTATION}` of {place} stands where it has no single argument"
            ));
        }
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(format!("`{ANNOTATION}` of {place} is not a header name"));
        }
        let kind = match kind.and_then(Value::as_str) {
            Some("string") => Kind::Text,
            Some("integer") => Kind::Integer,
            Some("boolean") => Kind::Boolean,
            _ => {
                return Err(format!(
                    "`{ANNOTATION}` of {place} is on something other than a string, integer or boolean"
                ));
            }
        };
        let Ok(header) = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()) else {
            return Err(format!("`{ANNOTATION}` of {place} is too long for a header name"));
        };
        if self.entries.iter().any(|entry| entry.header == header) {
            return Err(format!(
                "`{ANNOTATION}` of {place} names a header that another property names too"
            ));
        }
        self.entries.push(Entry {
            header,
            path: path.to_vec(),
            kind,
        });
        Ok(())
    }
}

/// A header value for any text: as it is where that is safe, else in Base64 between markers.
fn encode(text: &str) -> HeaderValue {
    let has_edge = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    let is_printable = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let is_safe = is_printable && !has_edge && !looks_encoded;
    if is_safe && let Ok(value) = HeaderValue::from_str(text) {
        return value;
    }
    HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text)))
        .expect("Base64 and its markers are visible ASCII")
}

/// RFC 9110 §5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn members(object: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(object.get()).ok()
}

fn at_path<'a>(arguments: &'a RawValue, path: &[String]) -> Option<&'a RawValue> {
    let mut value = arguments;
    for name in path {
        value = members(value)?.remove(name)?;
    }
    Some(value)
}

fn text_of(value: &RawValue, kind: Kind) -> Option<String> {
    match (kind, serde_json::from_str(value.get()).ok()?) {
        (Kind::Text, Primitive::Text(text)) => Some(text),
        (Kind::Boolean, Primitive::Boolean(value)) => Some(value.to_string()),
        (Kind::Integer, Primitive::Integer(value)) => {
            (value.unsigned_abs() <= LARGEST_INTEGER.unsigned_abs()).then(|| value.to_string())
        }
        // JSON Schema counts `42.0` and `1e3` as integers.
        (Kind::Integer, Primitive::Number(value)) => {
            #[expect(clippy::cast_precision_loss, reason = "the bound is exact as a double")]
            let is_integer = value.fract() == 0.0 && value.abs() <= LARGEST_INTEGER as f64;
            is_integer.then(|| format!("{:.0}", value + 0.0))
        }
        _ => None,
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Primitive {
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("the row is JSON")
    }

    fn lines(headers: Vec<(HeaderName, HeaderValue)>) -> Vec<String> {
        headers
            .into_iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("a header value is ASCII")))
            .collect()
    }

    #[test]
    fn values_are_plain_where_that_is_safe() {
        let rows = [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
            ("a\tb", "a\tb"),
            ("\ta", "=?base64?CWE=?="),
            ("a ", "=?base64?YSA=?="),
            ("=?base64?open", "=?base64?open"),
            ("=?BASE64?x?=", "=?BASE64?x?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("file:///a b", "file:///a b"),
        ];
        for (text, expected) in rows {
            assert_eq!(encode(text).as_bytes(), expected.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn a_request_is_named_by_its_method_and_what_it_is_about() {
        let rows: &[(&str, &str, &[&str])] = &[
            (
                "tools/call",
                r#"{"name":"echo","arguments":{}}"#,
                &["mcp-method: tools/call", "mcp-name: echo"],
            ),
            (
                "prompts/get",
                r#"{"name":"p"}"#,
                &["mcp-method: prompts/get", "mcp-name: p"],
            ),
            (
                "resources/read",
                r#"{"uri":"test://ä"}"#,
                &["mcp-method: resources/read", "mcp-name: =?base64?dGVzdDovL8Ok?="],
            ),
            (
                "tasks/get",
                r#"{"taskId":"t1"}"#,
                &["mcp-method: tasks/get", "mcp-name: t1"],
            ),
            (
                "tasks/update",
                r#"{"taskId":"t1"}"#,
                &["mcp-method: tasks/update", "mcp-name: t1"],
            ),
            (
                "tasks/cancel",
                r#"{"taskId":"t1"}"#,
                &["mcp-method: tasks/cancel", "mcp-name: t1"],
            ),
            ("tools/list", r#"{"name":"no"}"#, &["mcp-method: tools/list"]),
            (
                "completion/complete",
                r#"{"name":"no","uri":"no"}"#,
                &["mcp-method: completion/complete"],
            ),
            ("server/discover", "{}", &["mcp-method: server/discover"]),
            (
                "subscriptions/listen",
                "{}",
                &["mcp-method: subscriptions/listen"],
            ),
            ("tools/call", r#"{"name":7}"#, &["mcp-method: tools/call"]),
            ("tools/call", "[]", &["mcp-method: tools/call"]),
            (
                "tools/call",
                r#"{"n\u0061me":"caf\u00e9 \" "}"#,
                &["mcp-method: tools/call", "mcp-name: =?base64?Y2Fmw6kgIiA=?="],
            ),
        ];
        for (method, params, expected) in rows {
            assert_eq!(
                lines(standard(method, &raw(params))),
                *expected,
                "{method} {params}"
            );
        }
    }

    #[test]
    fn annotated_arguments_are_repeated() {
        let schema = raw(r#"{"type":"object","properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "count":{"type":"integer","x-mcp-header":"Count"},
                "dry":{"type":"boolean","x-mcp-header":"Dry-Run"},
                "free":{"type":"string"},
                "where":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}}}}"#);
        let headers = ToolHeaders::from_schema(&schema).expect("a valid schema");
        let rows: &[(&str, &[&str])] = &[
            (
                r#"{"region":"us-west1","count":42,"dry":true,"free":"x","where":{"zone":"b"}}"#,
                &[
                    "mcp-param-region: us-west1",
                    "mcp-param-count: 42",
                    "mcp-param-dry-run: true",
                    "mcp-param-zone: b",
                ],
            ),
            (
                r#"{"region":"","count":-7,"dry":false}"#,
                &[
                    "mcp-param-region: ",
                    "mcp-param-count: -7",
                    "mcp-param-dry-run: false",
                ],
            ),
            (r#"{"region":null,"where":{}}"#, &[]),
            (r#"{"region":5,"count":"5","dry":0,"where":"b"}"#, &[]),
            (
                r#"{"count":9007199254740991}"#,
                &["mcp-param-count: 9007199254740991"],
            ),
            (
                r#"{"count":-9007199254740991}"#,
                &["mcp-param-count: -9007199254740991"],
            ),
            (r#"{"count":9007199254740992}"#, &[]),
            (r#"{"count":1e400}"#, &[]),
            (r#"{"count":42.0}"#, &["mcp-param-count: 42"]),
            (r#"{"count":-0.0}"#, &["mcp-param-count: 0"]),
            (r#"{"count":42.5}"#, &[]),
            (r#"{"region":"日本"}"#, &["mcp-param-region: =?base64?5pel5pys?="]),
            (r#"{"region":"a","region":"b"}"#, &["mcp-param-region: b"]),
            ("{}", &[]),
            ("[]", &[]),
        ];
        for (arguments, expected) in rows {
            assert_eq!(
                lines(headers.of_arguments(Some(&raw(arguments)))),
                *expected,
                "{arguments}"
            );
        }
        assert!(headers.of_arguments(None).is_empty());
    }

    #[test]
    fn an_invalid_annotation_rules_the_tool_out() {
        let property = |property: &str| format!(r#"{{"type":"object","properties":{{"p":{property}}}}}"#);
        let annotated =
            |name: &str, kind: &str| property(&format!(r#"{{"type":{kind},"x-mcp-header":{name}}}"#));
        let inner = r#"{"type":"string","x-mcp-header":"X"}"#;
        let mut bad = vec![
            annotated(r#""""#, r#""string""#),
            annotated("7", r#""string""#),
            annotated("null", r#""string""#),
            annotated(r#""a b""#, r#""string""#),
            annotated(r#""a:b""#, r#""string""#),
            annotated(r#""ä""#, r#""string""#),
            annotated(r#""a\u0001b""#, r#""string""#),
            annotated(r#""a\r\nb""#, r#""string""#),
            annotated(r#""X""#, r#""number""#),
            annotated(r#""X""#, r#""object""#),
            annotated(r#""X""#, r#""array""#),
            annotated(r#""X""#, r#""null""#),
            annotated(r#""X""#, r#"["string"]"#),
            property(r#"{"x-mcp-header":"X"}"#),
            property(r#"{"x-mcp-h\u0065ader":"X"}"#),
            r#"{"type":"string","x-mcp-header":"X"}"#.to_owned(),
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"string","x-mcp-header":"sAME"}}}"#
                .to_owned(),
            format!(r#"{{"properties":{{"p":{inner}}},"if":{{"properties":{{"q":{inner}}}}}}}"#),
            format!("{}{inner}{}", r#"{"x":"#.repeat(200), "}".repeat(200)),
        ];
        for keyword in [
            "items",
            "additionalItems",
            "contains",
            "additionalProperties",
            "unevaluatedProperties",
            "not",
            "if",
            "then",
            "else",
            "propertyNames",
        ] {
            bad.push(property(&format!(r#"{{"{keyword}":{inner}}}"#)));
        }
        for keyword in ["prefixItems", "items", "oneOf", "anyOf", "allOf"] {
            bad.push(property(&format!(r#"{{"{keyword}":[{inner}]}}"#)));
        }
        for keyword in ["patternProperties", "$defs", "definitions", "dependentSchemas"] {
            bad.push(format!(
                r#"{{"{keyword}":{{"k":{inner}}},"properties":{{"p":{{"$ref":"x"}}}}}}"#
            ));
        }
        for schema in bad {
            assert!(ToolHeaders::from_schema(&raw(&schema)).is_err(), "{schema}");
        }
    }

    #[test]
    fn what_only_looks_like_an_annotation_is_none() {
        let good = [
            r#"{"type":"object"}"#,
            r#"{"properties":{"x-mcp-header":{"type":"object"}}}"#,
            r#"{"properties":{"p":{"enum":[{"x-mcp-header":""}],"const":{"x-mcp-header":1},"default":{"x-mcp-header":2}}}}"#,
            r#"{"dependentRequired":{"x-mcp-header":["a"]},"examples":[{"x-mcp-header":3}]}"#,
            r#"{"properties":{"p":{"description":"\u00e9"}}}"#,
            "true",
        ];
        for schema in good {
            assert_eq!(
                ToolHeaders::from_schema(&raw(schema)),
                Ok(ToolHeaders::default()),
                "{schema}"
            );
        }
    }
}
