//! The matching rules of `tests/cases` (see its README): what is given must be there, the rest is free.

use serde_json::{Map, Value};

/// `Ok` when `actual` is as `expected` says; else where and how it differs.
pub fn matches(expected: &Value, actual: Option<&Value>) -> Result<(), String> {
    at("", expected, actual)
}

fn at(path: &str, expected: &Value, actual: Option<&Value>) -> Result<(), String> {
    let place = if path.is_empty() { "the value" } else { path };
    let wrong = |wanted: &Value| Err(format!("{place}: expected {wanted}, got {}", shown(actual)));
    match expected {
        Value::Null => match actual {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(format!("{place}: expected to be absent, got {}", shown(actual))),
        },
        Value::String(text) => {
            let Some(pattern) = text.strip_prefix('~') else {
                return if actual == Some(expected) {
                    Ok(())
                } else {
                    wrong(expected)
                };
            };
            match actual {
                Some(Value::String(found)) if regex(pattern, found)? => Ok(()),
                Some(Value::Number(found)) if regex(pattern, &found.to_string())? => Ok(()),
                _ => wrong(expected),
            }
        }
        Value::Number(wanted) => match actual {
            Some(Value::Number(found)) if wanted == found || wanted.as_f64() == found.as_f64() => Ok(()),
            _ => wrong(expected),
        },
        Value::Bool(_) => {
            if actual == Some(expected) {
                Ok(())
            } else {
                wrong(expected)
            }
        }
        Value::Array(items) => {
            let Some(Value::Array(found)) = actual else {
                return wrong(expected);
            };
            if items.len() != found.len() {
                return wrong(expected);
            }
            for (index, (item, other)) in items.iter().zip(found).enumerate() {
                at(&format!("{path}/{index}"), item, Some(other))?;
            }
            Ok(())
        }
        Value::Object(members) => object(path, members, actual),
    }
}

fn object(path: &str, members: &Map<String, Value>, actual: Option<&Value>) -> Result<(), String> {
    if let Some(alternatives) = alternatives(members) {
        let mut reasons = Vec::new();
        for alternative in alternatives {
            match at(path, alternative, actual) {
                Ok(()) => return Ok(()),
                Err(reason) => reasons.push(reason),
            }
        }
        return Err(reasons.join("; nor "));
    }
    if is_range(members) && actual.is_some_and(Value::is_number) {
        let found = actual.and_then(Value::as_f64).unwrap_or_default();
        let low = members.get("min").and_then(Value::as_f64).unwrap_or(f64::MIN);
        let high = members.get("max").and_then(Value::as_f64).unwrap_or(f64::MAX);
        let within = (low..=high).contains(&found);
        return if within {
            Ok(())
        } else {
            Err(format!("{path}: {found} is not within {low}..={high}"))
        };
    }
    let Some(Value::Object(found)) = actual else {
        return Err(format!("{path}: expected an object, got {}", shown(actual)));
    };
    for (key, value) in members {
        at(&format!("{path}/{key}"), value, found.get(key))?;
    }
    Ok(())
}

/// `{"any": [...]}` and nothing beside it: a list of acceptable values.
pub fn alternatives(members: &Map<String, Value>) -> Option<&Vec<Value>> {
    if members.len() != 1 {
        return None;
    }
    members.get("any")?.as_array()
}

fn is_range(members: &Map<String, Value>) -> bool {
    !members.is_empty() && members.keys().all(|key| key == "min" || key == "max")
}

/// The dialect is that of JSON Schema's `pattern`, so the schema crate evaluates it.
pub fn regex(pattern: &str, text: &str) -> Result<bool, String> {
    let schema = serde_json::json!({ "pattern": pattern });
    let validator = jsonschema::validator_for(&schema).map_err(|error| format!("`{pattern}`: {error}"))?;
    Ok(validator.is_valid(&Value::String(text.to_owned())))
}

/// Every string occurs in the text, letter case ignored.
pub fn mentions(wanted: &Value, text: &str) -> Result<(), String> {
    let lower = text.to_lowercase();
    for word in strings(wanted)? {
        if !lower.contains(&word.to_lowercase()) {
            return Err(format!("`{word}` is not mentioned in: {}", cut(text)));
        }
    }
    Ok(())
}

/// None of the strings occurs anywhere in the text.
pub fn lacks(unwanted: &Value, text: &str) -> Result<(), String> {
    let lower = text.to_lowercase();
    for word in strings(unwanted)? {
        if lower.contains(&word.to_lowercase()) {
            return Err(format!("`{word}` is mentioned in: {}", cut(text)));
        }
    }
    Ok(())
}

fn strings(list: &Value) -> Result<Vec<&str>, String> {
    let list = list
        .as_array()
        .ok_or_else(|| format!("a list of strings was expected, not {list}"))?;
    list.iter()
        .map(|word| word.as_str().ok_or_else(|| format!("not a string: {word}")))
        .collect()
}

fn shown(actual: Option<&Value>) -> String {
    actual.map_or_else(|| "nothing".to_owned(), |value| cut(&value.to_string()))
}

/// Long texts are cut in the middle, so that a failure stays readable.
pub fn cut(text: &str) -> String {
    if text.len() <= 2000 {
        return text.to_owned();
    }
    let head: String = text.chars().take(1200).collect();
    let tail: String = text
        .chars()
        .rev()
        .take(600)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    format!("{head} … ({} bytes) … {tail}", text.len())
}

/// Every text and number inside a value, one per line: what a person could read of it.
pub fn readable(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => format!("{flag}\n"),
        Value::Number(number) => format!("{number}\n"),
        Value::String(text) => format!("{text}\n"),
        Value::Array(items) => items.iter().map(readable).collect(),
        Value::Object(members) => members.values().map(readable).collect(),
    }
}
