//! A configuration text as JSON, whatever it is written in: JSON with comments, a piece of it, TOML or YAML.

use serde_json::{Map, Value};

use super::yaml;
use crate::config::syntax::Document;

/// The document, or why it cannot be read.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err("there is no text".to_owned());
    }
    if text.starts_with('{') || text.starts_with("//") || text.starts_with("/*") {
        return json(text);
    }
    if text.starts_with('"') {
        // A piece from the inside of an object, as people copy it.
        return json(&format!("{{{}}}", text.trim_end_matches(',')));
    }
    if let Some(table) = text.strip_prefix('[') {
        return match json(text) {
            Ok(value) => Ok(value),
            // `[mcp_servers.x]` begins a table of TOML.
            Err(_)
                if table
                    .trim_start_matches('[')
                    .starts_with(|one: char| one.is_alphabetic()) =>
            {
                toml(text)
            }
            Err(fault) => Err(fault),
        };
    }
    match toml(text) {
        Ok(value) => Ok(value),
        Err(fault) => match yaml::read(text) {
            Ok(value) if value.is_object() || value.is_array() => Ok(value),
            Ok(_) => Err(fault),
            Err(other) if text.lines().any(|line| line.trim_end().ends_with(':')) => Err(other),
            Err(_) => Err(fault),
        },
    }
}

fn json(text: &str) -> Result<Value, String> {
    match Document::parse(text) {
        Ok(document) => Ok(document.value()),
        Err(fault) => Err(format!(
            "line {}, column {}: {}",
            fault.place.line, fault.place.column, fault.message
        )),
    }
}

fn toml(text: &str) -> Result<Value, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| format!("no TOML: {}", error.message()))?;
    Ok(of_table(table))
}

fn of_table(table: toml::Table) -> Value {
    Value::Object(
        table
            .into_iter()
            .map(|(name, value)| (name, of_toml(value)))
            .collect::<Map<_, _>>(),
    )
}

fn of_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(is_true) => is_true.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(of_toml).collect(),
        toml::Value::Table(table) => of_table(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_writing_is_read() {
        assert_eq!(read("{\"a\": 1, } // x").unwrap(), json!({"a": 1}));
        assert_eq!(read("\"a\": {\"b\": 1},").unwrap(), json!({"a": {"b": 1}}));
        assert_eq!(read("[t.a]\nb = 1").unwrap(), json!({"t": {"a": {"b": 1}}}));
        assert_eq!(read("x = 1\n[t]\n").unwrap(), json!({"x": 1, "t": {}}));
        assert_eq!(
            read("a:\n  - b: 1\n    c: x y\n").unwrap(),
            json!({"a": [{"b": 1, "c": "x y"}]})
        );
        assert!(read("{\"a\": ").unwrap_err().contains("line 1"));
    }
}
