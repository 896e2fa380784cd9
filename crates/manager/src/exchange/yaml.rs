//! YAML as JSON, from the parser's events. Aliases are refused: they could be made to grow without end.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Levels of a text, as for JSON.
const DEPTH: usize = 64;

enum Open {
    List(Vec<Value>),
    /// The members so far, and a name that waits for its value.
    Object(Map<String, Value>, Option<String>),
}

/// The first document of a text.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("no YAML: {error}"))?;
        let done = match event {
            Event::Alias(_) => {
                return Err(format!(
                    "line {}: an alias of YAML is not read: write its value out",
                    span.start.line()
                ));
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                None
            }
            Event::MappingStart(..) => {
                open.push(Open::Object(Map::new(), None));
                None
            }
            Event::Scalar(text, style, ..) => Some(scalar(&text, style == ScalarStyle::Plain)),
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|whole| match whole {
                Open::List(items) => Value::Array(items),
                Open::Object(members, _) => Value::Object(members),
            }),
            _ => None,
        };
        if open.len() > DEPTH {
            return Err(format!("nested more than {DEPTH} levels deep"));
        }
        let Some(value) = done else { continue };
        match open.last_mut() {
            None => return Ok(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object(members, name)) => match name.take() {
                Some(name) => drop(members.insert(name, value)),
                None => {
                    *name = Some(match value {
                        Value::String(text) => text,
                        other => other.to_string(),
                    });
                }
            },
        }
    }
    Ok(Value::Null)
}

/// Plain words of the core schema; anything else is text.
fn scalar(text: &str, is_plain: bool) -> Value {
    if !is_plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => match serde_json::from_str::<serde_json::Number>(text) {
            Ok(number) => Value::Number(number),
            Err(_) => text.into(),
        },
    }
}
