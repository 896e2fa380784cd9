//! Which members of an entry its type has.

use serde_json::{Map, Value};

use super::validate::{SCHEMA, pointer};

/// The members of an entry that its type has, and pointers to the others.
pub(crate) fn known_members(value: &Value) -> (Value, Vec<String>) {
    let mut known = value.clone();
    let mut unknown = Vec::new();
    prune(&mut known, &SCHEMA, &mut Vec::new(), &mut unknown);
    (known, unknown)
}

/// Drops members that a closed object schema does not name; `null` counts as absent.
fn prune(value: &mut Value, schema: &Value, path: &mut Vec<String>, unknown: &mut Vec<String>) {
    let Value::Object(members) = value else { return };
    let Some(properties) = closed_properties(schema) else {
        // Objects by name, such as `tools.overrides`.
        for (name, member) in members.iter_mut() {
            path.push(name.clone());
            prune(member, &schema["additionalProperties"], path, unknown);
            path.pop();
        }
        return;
    };
    members.retain(|name, member| {
        if properties.contains_key(name) {
            return !member.is_null();
        }
        path.push(name.clone());
        unknown.push(pointer(path));
        path.pop();
        false
    });
    for (name, member) in members.iter_mut() {
        path.push(name.clone());
        prune(member, &properties[name], path, unknown);
        path.pop();
    }
}

/// The named members of the closed object that a schema describes, through `$ref` and the branches of a union.
fn closed_properties(schema: &Value) -> Option<&Map<String, Value>> {
    if let Some(reference) = schema["$ref"].as_str() {
        return closed_properties(SCHEMA.pointer(reference.strip_prefix('#')?)?);
    }
    if schema["additionalProperties"] == Value::Bool(false)
        && let Some(properties) = schema["properties"].as_object()
    {
        return Some(properties);
    }
    let branches = schema["anyOf"]
        .as_array()
        .or_else(|| schema["oneOf"].as_array())?;
    branches.iter().find_map(closed_properties)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_members_are_named_and_left_out() {
        let (known, unknown) = known_members(
            &json!({"url": "https://h", "x": 1, "oauth": {"clientId": "a", "y": 2}, "cwd": null}),
        );
        assert_eq!(unknown, ["/x", "/oauth/y"]);
        let (_, unknown) =
            known_members(&json!({"url": "https://h", "tools": {"overrides": {"a": {"z": 1}}}}));
        assert_eq!(unknown, ["/tools/overrides/a/z"]);
        assert_eq!(known, json!({"url": "https://h", "oauth": {"clientId": "a"}}));
    }
}
