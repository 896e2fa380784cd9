//! Which members of an entry its type has.

use serde_json::{Map, Value};

use super::validate::{SCHEMA, pointer};
use crate::spelling::nearest;

/// A member that the type of an entry does not have. It does nothing, and stays in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// A JSON Pointer into the entry.
    pub pointer: String,
    /// The member of the same object that was probably meant.
    pub meant: Option<String>,
}

impl Unknown {
    /// The member as people write it: `oauth.clientID`.
    pub fn name(&self) -> String {
        let name = self.pointer.trim_start_matches('/').replace('/', ".");
        name.replace("~1", "/").replace("~0", "~")
    }

    /// What is wrong, in words.
    pub fn said(&self) -> String {
        match &self.meant {
            Some(meant) => format!("`{}` is not known; did you mean `{meant}`?", self.name()),
            None => format!("`{}` is not known", self.name()),
        }
    }
}

/// The members of an entry that its type has, and the others.
pub(crate) fn known_members(value: &Value) -> (Value, Vec<Unknown>) {
    let mut known = value.clone();
    let mut unknown = Vec::new();
    prune(&mut known, &SCHEMA, &mut Vec::new(), &mut unknown);
    (known, unknown)
}

/// Drops members that a closed object schema does not name; `null` counts as absent.
fn prune(value: &mut Value, schema: &Value, path: &mut Vec<String>, unknown: &mut Vec<Unknown>) {
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
        unknown.push(Unknown {
            pointer: pointer(path),
            meant: nearest(name, properties.keys().map(String::as_str)).map(str::to_owned),
        });
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
        assert_eq!(pointers(&unknown), ["/x", "/oauth/y"]);
        assert_eq!(known, json!({"url": "https://h", "oauth": {"clientId": "a"}}));
        let (_, unknown) =
            known_members(&json!({"url": "https://h", "tools": {"overrides": {"a": {"z": 1}}}}));
        assert_eq!(pointers(&unknown), ["/tools/overrides/a/z"]);
    }

    fn pointers(unknown: &[Unknown]) -> Vec<&str> {
        unknown.iter().map(|unknown| unknown.pointer.as_str()).collect()
    }

    /// A slip is set right by the members of the object that it stands in.
    #[test]
    fn what_was_meant_is_named() {
        let entry = json!({"commnad": "x", "colour": 1, "oauth": {"clientID": "a"}, "tools": {"overrides": {"a": {"nmae": "b"}}}});
        let said: Vec<String> = known_members(&entry).1.iter().map(Unknown::said).collect();
        assert_eq!(
            said,
            [
                "`commnad` is not known; did you mean `command`?",
                "`colour` is not known",
                "`oauth.clientID` is not known; did you mean `clientId`?",
                "`tools.overrides.a.nmae` is not known; did you mean `name`?",
            ]
        );
    }
}
