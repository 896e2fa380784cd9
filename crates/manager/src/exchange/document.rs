//! A configuration text as JSON, whatever it is written in: JSON with comments, a piece of it, TOML or YAML.

use std::fmt;

use serde_json::Value;

use super::{toml, yaml};
use crate::config::syntax::{Document, Place, place};

/// Why a text cannot be read or changed, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub message: String,
    pub place: Option<Place>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Fault {
        Fault {
            message: message.into(),
            place: None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(Place { line, column }) => write!(f, "line {line}, column {column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// A fault at a byte of a text.
pub(crate) fn fault_at(text: &str, offset: usize, message: String) -> Fault {
    Fault {
        message,
        place: Some(place(text, offset)),
    }
}

/// The document, or why it cannot be read.
pub(crate) fn read(text: &str) -> Result<Value, Fault> {
    let text = text.trim_start_matches('\u{feff}').trim_end();
    let start = text.trim_start();
    if start.is_empty() {
        return Err(Fault::new("there is no text"));
    }
    if start.starts_with('{') || start.starts_with("//") || start.starts_with("/*") {
        return json(text);
    }
    if start.starts_with('"') {
        // A piece from the inside of an object, as people copy it.
        return json(&format!("{{{}}}", start.trim_end_matches(',')))
            .map_err(|fault| inside(fault, text, start));
    }
    if let Some(table) = start.strip_prefix('[') {
        return match json(text) {
            Ok(value) => Ok(value),
            // `[mcp_servers.x]` begins a table of TOML.
            Err(_)
                if table
                    .trim_start_matches('[')
                    .starts_with(|one: char| one.is_alphabetic()) =>
            {
                toml::read(text)
            }
            Err(fault) => Err(fault),
        };
    }
    match toml::read(text) {
        Ok(value) => Ok(value),
        Err(fault) => match yaml::read(text) {
            Ok(value) if value.is_object() || value.is_array() => Ok(value),
            Ok(_) => Err(fault),
            Err(other) if is_meant_as_yaml(text) => Err(other),
            Err(_) => Err(fault),
        },
    }
}

/// A fault in `start` with a brace before it, as one in the `text` that ends with `start`.
fn inside(mut fault: Fault, text: &str, start: &str) -> Fault {
    let begin = place(text, text.len() - start.len());
    let end = place(text, text.len());
    if let Some(place) = &mut fault.place {
        if place.line == 1 {
            place.column = (begin.column + place.column).saturating_sub(2).max(begin.column);
        }
        place.line += begin.line - 1;
        if place.line == end.line {
            place.column = place.column.min(end.column);
        }
    }
    fault
}

/// `name: value` is no TOML, and `name = value` no YAML.
fn is_meant_as_yaml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first
        .and_then(|line| line.find([':', '=']).map(|at| line.as_bytes()[at] == b':'))
        .unwrap_or_default()
}

fn json(text: &str) -> Result<Value, Fault> {
    // Some programs read JSON5, and nothing that is JSON means something else in it.
    let strict = match Document::parse(text) {
        Ok(document) => return Ok(document.value()),
        Err(fault) => fault,
    };
    match Document::parse_json5(text) {
        Ok(document) => Ok(document.value()),
        Err(_) => Err(Fault {
            message: strict.message,
            place: Some(strict.place),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_writing_is_read() {
        assert_eq!(read("{\"a\": 1, } // x").unwrap(), json!({"a": 1}));
        assert_eq!(read("{a: 'x y',}").unwrap(), json!({"a": "x y"}));
        assert_eq!(read("\"a\": {\"b\": 1},").unwrap(), json!({"a": {"b": 1}}));
        assert_eq!(read("[t.a]\nb = 1").unwrap(), json!({"t": {"a": {"b": 1}}}));
        assert_eq!(read("x = 1\n[t]\n").unwrap(), json!({"x": 1, "t": {}}));
        assert_eq!(
            read("a:\n  - b: 1\n    c: x y\n").unwrap(),
            json!({"a": [{"b": 1, "c": "x y"}]})
        );
    }

    #[test]
    fn faults_say_where() {
        let place = |text: &str| read(text).unwrap_err().place.map(|place| place.line);
        assert_eq!(place("{\n\"a\": "), Some(2));
        assert_eq!(place("\n\n{\"a\": oops oops}"), Some(3));
        assert_eq!(place("\n \"a\": 1,\n \"b\": oops"), Some(3));
        assert_eq!(place("a = 1\nb = \n"), Some(2));
        assert_eq!(place("a:\n  - b: [\n"), Some(2));
    }
}
