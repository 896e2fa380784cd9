//! Looks into JSON text without building values.
//!
//! Everything here works on text that has been validated before (a [`RawValue`]), so that a skip need not check anything. What is
//! found is a slice of that text: numbers, escapes, duplicates and the order of members stay as they are.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use serde_json::value::RawValue;

/// The members of an object, or none if the text is not an object.
pub(crate) fn members(text: &str) -> Members<'_> {
    let start = skip_space(text.as_bytes(), 0);
    let at = if text.as_bytes().get(start) == Some(&b'{') {
        start + 1
    } else {
        text.len()
    };
    Members { text, at }
}

/// The value of the last member of this name, as JavaScript would see it.
pub(crate) fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    members(text)
        .filter(|found| found.is(name))
        .last()
        .map(|found| found.value)
}

/// The value of the first member of this name: stops reading there.
pub(crate) fn first_member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    members(text)
        .find(|found| found.is(name))
        .map(|found| found.value)
}

/// The elements of an array; `None` if the text is not an array.
pub(crate) fn elements(text: &str) -> Option<Elements<'_>> {
    let start = skip_space(text.as_bytes(), 0);
    (text.as_bytes().get(start) == Some(&b'[')).then_some(Elements { text, at: start + 1 })
}

/// The content of a string; `None` if the text is none, or holds a lone surrogate.
pub(crate) fn string(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.trim().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(text).ok().map(Cow::Owned)
}

pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Turns text that was cut out of a valid JSON text into a value of its own.
pub(crate) fn raw(text: &str) -> Box<RawValue> {
    serde_json::from_str::<&RawValue>(text).map_or_else(|_| null(), ToOwned::to_owned)
}

pub(crate) fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    /// With its quotes and escapes.
    pub key: &'a str,
    pub value: &'a str,
    /// Where key and value stand in the text.
    pub span: (usize, usize),
}

impl Member<'_> {
    pub(crate) fn is(&self, name: &str) -> bool {
        string(self.key).as_deref() == Some(name)
    }

    pub(crate) fn value_range(&self) -> Range<usize> {
        self.span.1 - self.value.len()..self.span.1
    }
}

pub(crate) struct Members<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let bytes = self.text.as_bytes();
        let key_start = skip_separators(bytes, self.at);
        if bytes.get(key_start) != Some(&b'"') {
            self.at = bytes.len();
            return None;
        }
        let key_end = skip_string(bytes, key_start);
        let value_start = skip_separators(bytes, key_end);
        let value_end = skip_value(bytes, value_start);
        self.at = value_end;
        Some(Member {
            key: self.text.get(key_start..key_end)?,
            value: self.text.get(value_start..value_end)?,
            span: (key_start, value_end),
        })
    }
}

pub(crate) struct Elements<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = skip_separators(bytes, self.at);
        if matches!(bytes.get(start), None | Some(b']')) {
            self.at = bytes.len();
            return None;
        }
        self.at = skip_value(bytes, start);
        self.text.get(start..self.at)
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

fn skip_separators(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':')) {
        at += 1;
    }
    at
}

/// `at` is the opening quote; returns the place after the closing one.
fn skip_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn skip_value(bytes: &[u8], mut at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => skip_string(bytes, at),
        Some(b'{' | b'[') => {
            let mut depth = 0usize;
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = skip_string(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            at
        }
        _ => {
            while let Some(byte) = bytes.get(at) {
                if matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') {
                    break;
                }
                at += 1;
            }
            at
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn finds_members_as_they_stand() {
        let text = r#" { "a" : 1.10, "b":[{"a":2},"}"] ,"\u0061":"\ud800", "c":{"x":"\\\""}} "#;
        let seen: Vec<_> = members(text).map(|found| (found.key, found.value)).collect();
        assert_eq!(
            seen,
            [
                (r#""a""#, "1.10"),
                (r#""b""#, r#"[{"a":2},"}"]"#),
                (r#""\u0061""#, r#""\ud800""#),
                (r#""c""#, r#"{"x":"\\\""}"#)
            ]
        );
        assert_eq!(member(text, "a"), Some(r#""\ud800""#));
        assert_eq!(first_member(text, "a"), Some("1.10"));
        for found in members(text) {
            assert_eq!(&text[found.value_range()], found.value);
        }
        assert_eq!(members("[1]").count(), 0);
        assert_eq!(members("{}").count(), 0);
        assert!(elements("{}").is_none());
        assert_eq!(elements("[ ]").map(Iterator::count), Some(0));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|pairs| pairs.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_full_parser(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }?;
            if let Value::Object(map) = &value {
                let seen: Vec<(String, Value)> = members(&text)
                    .map(|found| Ok((serde_json::from_str(found.key)?, serde_json::from_str(found.value)?)))
                    .collect::<Result<_, serde_json::Error>>()?;
                let expected: Vec<_> = map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                prop_assert_eq!(seen, expected);
            }
            if let Value::Array(list) = &value {
                let seen: Vec<Value> = elements(&text).expect("an array")
                    .map(serde_json::from_str)
                    .collect::<Result<_, _>>()?;
                prop_assert_eq!(&seen, list);
            }
        }
    }
}
