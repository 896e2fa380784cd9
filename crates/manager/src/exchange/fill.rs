//! Filling in what a draft leaves open.

use protocol::{Need, ServerEntry};
use serde_json::{Map, Value};

use super::declared;

/// Whether nothing usable stands yet where a value is needed.
pub fn is_open(entry: &ServerEntry, need: &Need) -> bool {
    let value = serde_json::to_value(entry).unwrap_or_default();
    need.required && (need.default.is_none() || value.pointer(&need.at).is_none())
}

/// The entry with a value where `need` wants it: in place of `${input:LABEL}`, or as the whole of what stands there.
/// An error says why it does not fit.
pub fn fill(entry: &ServerEntry, need: &Need, given: &str) -> Result<ServerEntry, String> {
    if let Some(choices) = &need.choices
        && !choices.iter().any(|choice| choice == given)
        && !given.contains("${")
    {
        return Err(format!("`{}` is one of {}", need.label, choices.join(", ")));
    }
    let mut value = serde_json::to_value(entry).map_err(|error| error.to_string())?;
    let hole = format!("${{input:{}}}", need.label);
    let new = match value.pointer(&need.at).and_then(Value::as_str) {
        Some(text) if text.contains(&hole) => text.replace(&hole, given),
        _ => given.to_owned(),
    };
    let steps: Vec<String> = need
        .at
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect();
    set(&mut value, "", &steps, new)?;
    let mut filled = serde_json::from_value(value).map_err(|error| error.to_string())?;
    declared::forget_others(&mut filled);
    Ok(filled)
}

/// `name`: what the value is called. A variable may be called `0`; only lists have places.
fn set(value: &mut Value, name: &str, steps: &[String], new: String) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *value = Value::String(new);
        return Ok(());
    };
    if value.is_null() {
        *value = match name {
            "args" | "headersHelper" => Value::Array(Vec::new()),
            _ => Value::Object(Map::new()),
        };
    }
    match value {
        Value::Array(items) => {
            let index: usize = step
                .parse()
                .map_err(|_| format!("`{step}` is no place in a list"))?;
            if index >= items.len() {
                items.push(Value::Null);
            }
            let index = index.min(items.len() - 1);
            set(&mut items[index], step, rest, new)
        }
        Value::Object(members) => set(
            members.entry(step.clone()).or_insert(Value::Null),
            step,
            rest,
            new,
        ),
        _ => Err(format!("nothing can be filled in at `{step}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(entry: Value, at: &str, expected: Value) {
        let need: Need =
            serde_json::from_value(json!({"at": at, "label": "token", "secret": true, "required": true}))
                .unwrap();
        let entry: ServerEntry = serde_json::from_value(entry).unwrap();
        assert!(is_open(&entry, &need));
        let filled = fill(&entry, &need, "t-1").unwrap();
        assert_eq!(serde_json::to_value(filled).unwrap(), expected);
    }

    #[test]
    fn a_value_goes_where_it_is_needed() {
        check(
            json!({"command": "x"}),
            "/env/A",
            json!({"command": "x", "env": {"A": "t-1"}}),
        );
        check(
            json!({"command": "x"}),
            "/env/0",
            json!({"command": "x", "env": {"0": "t-1"}}),
        );
        check(
            json!({"command": "x", "args": ["-y"]}),
            "/args/1",
            json!({"command": "x", "args": ["-y", "t-1"]}),
        );
        check(
            json!({"command": "x", "args": ["--key=${input:token}"]}),
            "/args/0",
            json!({"command": "x", "args": ["--key=t-1"]}),
        );
        check(
            json!({"url": "https://h/${input:token}/mcp"}),
            "/url",
            json!({"url": "https://h/t-1/mcp"}),
        );
        check(
            json!({"url": "https://h", "headers": {"Authorization": "Bearer ${input:token}"}}),
            "/headers/Authorization",
            json!({"url": "https://h", "headers": {"Authorization": "Bearer t-1"}}),
        );
        check(
            json!({"url": "https://h"}),
            "/oauth/clientId",
            json!({"url": "https://h", "oauth": {"clientId": "t-1"}}),
        );
    }
}
