//! What of a tool a model reads, in a form that is the same for the same meaning: the measure of a change.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::config::file::strong_digest;

/// The members that a model or its approval depend on.
const MEMBERS: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
];

/// The parts of a tool's own text that a host may want to pass on.
#[derive(Deserialize)]
pub(crate) struct Parts<'a> {
    #[serde(borrow, default, rename = "inputSchema")]
    pub input: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "outputSchema")]
    pub output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub annotations: Option<&'a RawValue>,
}

impl<'a> Parts<'a> {
    /// The parts of a tool as its server wrote it.
    pub fn of(raw: &'a str) -> Option<Parts<'a>> {
        let mut parts: Parts<'a> = serde_json::from_str(raw).ok()?;
        for part in [&mut parts.input, &mut parts.output, &mut parts.annotations] {
            if part.is_some_and(|part| !part.get().starts_with('{')) {
                *part = None;
            }
        }
        Some(parts)
    }
}

/// The definition in canonical form: known members only, every object sorted.
pub(crate) fn canonical(raw: &str) -> Value {
    let Ok(value) = serde_json::from_str::<Value>(raw) else {
        // What no tree can hold (a huge number, half a surrogate) is compared as the text it is.
        return Value::String(raw.to_owned());
    };
    let members = MEMBERS.iter().filter_map(|name| {
        let member = value.get(name).filter(|member| !member.is_null())?;
        Some(((*name).to_owned(), sorted(member)))
    });
    Value::Object(members.collect())
}

/// The same value with the members of every object in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            let members = names
                .into_iter()
                .map(|name| (name.clone(), sorted(&members[name])));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// The fingerprint of a canonical definition.
pub(crate) fn fingerprint(definition: &Value) -> String {
    strong_digest(definition.to_string().as_bytes())
}

/// The members in which two definitions differ.
pub(crate) fn differing(before: &Value, after: &Value) -> Vec<String> {
    MEMBERS
        .iter()
        .filter(|name| before.get(name) != after.get(name))
        .map(|name| (*name).to_owned())
        .collect()
}

/// Whether a tool of another name is the same tool: same words or, with parameters, same schema.
pub(crate) fn is_same_tool(before: &Value, after: &Value) -> bool {
    let schema = |value: &Value| value.get("inputSchema").cloned().unwrap_or_default();
    let has_parameters = schema(before)["properties"]
        .as_object()
        .is_some_and(|properties| !properties.is_empty());
    if has_parameters && schema(before) == schema(after) {
        return true;
    }
    let words = |value: &Value| -> std::collections::BTreeSet<String> {
        let text = value["description"].as_str().unwrap_or_default().to_lowercase();
        text.split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (before, after) = (words(before), words(after));
    let common = before.intersection(&after).count();
    let all = before.union(&after).count();
    // Three words in four; a text of two or three words says too little.
    common >= 4 && common * 4 >= all * 3
}

/// Every text in a definition that a model reads.
pub(crate) fn texts(definition: &Value, into: &mut String) {
    match definition {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(members) => {
            for (name, member) in members {
                into.push_str(name);
                into.push('\n');
                texts(member, into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_foreign_members_make_no_difference() {
        let a = canonical(r#"{"name":"t","inputSchema":{"type":"object","a":1},"_meta":{"at":1}}"#);
        let b = canonical(r#"{"inputSchema":{"a":1,"type":"object"},"name":"t","_meta":{"at":2}}"#);
        assert_eq!(fingerprint(&a), fingerprint(&b));
        let c = canonical(r#"{"inputSchema":{"a":2,"type":"object"},"name":"t","title":null}"#);
        assert_ne!(fingerprint(&a), fingerprint(&c));
        assert_eq!(differing(&a, &c), ["inputSchema"]);
    }

    #[test]
    fn a_renamed_tool_is_recognised() {
        let tool =
            |text: &str, schema: Value| serde_json::json!({"description": text, "inputSchema": schema});
        let plain = serde_json::json!({"type": "object"});
        let path = serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let read = tool("Read the text of one file from the disk", plain.clone());
        assert!(is_same_tool(
            &read,
            &tool("Read the text of one file from the disk. Now!", plain.clone())
        ));
        assert!(!is_same_tool(
            &read,
            &tool("Sends a mail to somebody else", plain)
        ));
        assert!(is_same_tool(
            &tool("x", path.clone()),
            &tool("quite another text", path)
        ));
    }
}
