//! What the person of a case does with a question, and the form as a case describes it.

use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::support::Host;

/// Answers the question as `user` says: an action, or a list with one for each question.
pub fn answer(host: &Host, user: &Value, question: &Value, index: usize) -> Result<(), String> {
    let action = match user {
        Value::Array(list) => list
            .get(index.min(list.len().saturating_sub(1)))
            .unwrap_or(&Value::Null),
        one => one,
    };
    if let Some(delay) = action["after_ms"].as_u64() {
        thread::sleep(Duration::from_millis(delay));
    }
    let outcome = match action {
        Value::String(word) if word == "decline" => host.answer(question, "decline", None),
        Value::String(word) if word == "dismiss" => host.answer(question, "cancel", None),
        Value::Object(members) if members.contains_key("accept") => {
            host.answer(question, "accept", Some(action["accept"].clone()))
        }
        Value::Object(members) if members.contains_key("accept_as_shown") => {
            host.answer(question, "accept", Some(as_shown(question)))
        }
        // Nobody is there.
        Value::Null => return Ok(()),
        other => {
            return Err(format!(
                "this runner does not know what the user does here: {other}"
            ));
        }
    };
    outcome
        .map(|_| ())
        .map_err(|error| format!("the answer was refused: {error}"))
}

/// What a form holds when one just confirms it.
fn as_shown(question: &Value) -> Value {
    let fields = question["fields"].as_array().cloned().unwrap_or_default();
    let filled = fields.iter().filter_map(|field| {
        let default = field.get("default").filter(|default| !default.is_null())?;
        Some((field["name"].as_str()?.to_owned(), default.clone()))
    });
    Value::Object(filled.collect::<Map<_, _>>())
}

/// The fields in the words of the cases.
pub fn form(question: &Value) -> Value {
    let fields = question["fields"].as_array().cloned().unwrap_or_default();
    fields.iter().map(field).collect()
}

fn field(field: &Value) -> Value {
    let first = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| field.get(key))
            .cloned()
            .unwrap_or(Value::Null)
    };
    let options = field["options"].as_array().map_or(Value::Null, |options| {
        options
            .iter()
            .map(|option| json!([option["value"], option["label"]]))
            .collect()
    });
    json!({
        "name": field["name"],
        "kind": field["type"],
        "label": field["label"],
        "description": field["description"],
        "required": field["required"],
        "format": field["format"],
        "default": field["default"],
        "min": first(&["minimum", "minItems", "minLength"]),
        "max": first(&["maximum", "maxItems", "maxLength"]),
        "options": options,
    })
}
