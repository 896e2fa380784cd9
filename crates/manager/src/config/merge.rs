//! Changes of an entry: members taken away, then members set; what was masked on its way out stays what it is.

use protocol::{Error, ErrorKind, Pointer, ServerEntry};
use serde_json::{Map, Value};

use super::secret::{self, MASK};
use super::{members, validate};

/// The entry as it stands in its file after the change, members we do not know included.
pub(crate) fn merged(stored: &Value, set: Option<&ServerEntry>, unset: &[Pointer]) -> Result<Value, Error> {
    let (known, _) = members::known_members(stored);
    let current: ServerEntry = serde_json::from_value(known).unwrap_or_default();
    let (shown, masked) = secret::masked(&current);
    let shown = serde_json::to_value(&shown).unwrap_or_default();
    let mut entry = stored.clone();
    for pointer in unset {
        remove(&mut entry, pointer)?;
    }
    let mut set = set.map_or(Value::Null, |set| serde_json::to_value(set).unwrap_or_default());
    for pointer in masked {
        // To store an empty text, its name stands in `unset` too.
        let is_unset = unset.iter().any(|unset| **unset == *pointer);
        let Some(given) = set.pointer_mut(&pointer) else {
            continue;
        };
        let keeps = given.as_str().is_some_and(|text| text.is_empty() && !is_unset)
            || *given == MASK
            || Some(&*given) == shown.pointer(&pointer);
        if keeps && let Some(stored) = stored.pointer(&pointer) {
            *given = stored.clone();
        }
    }
    if let Some(path) = masked_member(&set) {
        return Err(mask_refused(&format!("/set{}", validate::pointer(&path))));
    }
    if let Value::Object(members) = set {
        overlay(&mut entry, members);
    }
    let marks: Vec<String> = current
        .secrets
        .iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    stay_secret(&marks, stored, &mut entry);
    Ok(entry)
}

/// What was called a secret stays one as long as its value stands somewhere in the entry, whatever else is changed.
fn stay_secret(marks: &[String], before: &Value, entry: &mut Value) {
    if marks.is_empty() {
        return;
    }
    let mut stay: Vec<Value> = entry["secrets"].as_array().cloned().unwrap_or_default();
    for mark in marks {
        let Some(value) = before.pointer(mark) else {
            continue;
        };
        let mut at = Vec::new();
        // An argument may have moved.
        if mark.starts_with("/args/") {
            let args = entry["args"].as_array().into_iter().flatten().enumerate();
            at.extend(
                args.filter(|(_, argument)| *argument == value)
                    .map(|(index, _)| format!("/args/{index}")),
            );
        } else if entry.pointer(mark) == Some(value) {
            at.push(mark.clone());
        }
        for pointer in at.into_iter().map(Value::from) {
            if !stay.contains(&pointer) {
                stay.push(pointer);
            }
        }
    }
    if !stay.is_empty() {
        entry["secrets"] = stay.into();
    }
}

/// Maps merge key by key, everything else replaces.
fn overlay(entry: &mut Value, members: Map<String, Value>) {
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    let Value::Object(target) = entry else { return };
    for (name, member) in members {
        match (target.get_mut(&name), member) {
            (Some(known @ Value::Object(_)), Value::Object(inner)) => overlay(known, inner),
            (_, member) => drop(target.insert(name, member)),
        }
    }
}

fn remove(entry: &mut Value, pointer: &str) -> Result<(), Error> {
    let refused = |message: String| {
        Error::new(ErrorKind::InvalidParams, message)
            .path("/unset")
            .expected("JSON Pointers to members of the entry, such as `/env/NAME`")
    };
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return Err(refused(format!("`{pointer}` is no JSON Pointer")));
    };
    let last = last.replace("~1", "/").replace("~0", "~");
    match entry.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.shift_remove(&last);
            if members.is_empty() && !parent.is_empty() {
                return remove(entry, parent);
            }
            Ok(())
        }
        Some(Value::Array(_)) => Err(refused(format!("`{pointer}`: lists are set as a whole"))),
        // What is not there is gone already.
        _ => Ok(()),
    }
}

/// Where a mask stands in place of a value.
fn masked_member(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => text.contains(MASK).then(Vec::new),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| step(index.to_string(), item)),
        Value::Object(members) => members
            .iter()
            .find_map(|(name, member)| step(name.clone(), member)),
        _ => None,
    }
}

fn step(name: String, value: &Value) -> Option<Vec<String>> {
    let mut path = masked_member(value)?;
    path.insert(0, name);
    Some(path)
}

fn mask_refused(path: &str) -> Error {
    let member = path.rsplit('/').next().unwrap_or_default();
    let member = member.replace("~1", "/").replace("~0", "~");
    Error::new(
        ErrorKind::InvalidParams,
        format!("`{member}` is given as `{MASK}`, which is the mask of a secret and no value"),
    )
    .path(path)
    .expected("the secret itself, or a reference such as `${NAME}`")
}

/// A mask never reaches the disk.
pub(crate) fn check_no_mask(entry: &ServerEntry) -> Result<(), Error> {
    match masked_member(&serde_json::to_value(entry).unwrap_or_default()) {
        Some(path) => Err(mask_refused(&format!("/entry{}", validate::pointer(&path)))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(set: Value, unset: &[&str], expected: Result<Value, &str>) {
        let stored = json!({
            "command": "x", "own": 1, "args": ["--token", "t-1", "a"],
            "env": {"API_KEY": "k-1", "MODE": "m", "OLD": "o"},
        });
        let set: ServerEntry = serde_json::from_value(set).unwrap();
        let unset: Vec<Pointer> = unset.iter().map(|pointer| Pointer::from(*pointer)).collect();
        let merged = merged(&stored, Some(&set), &unset);
        match (merged, expected) {
            (Ok(merged), Ok(changes)) => {
                let mut expected = stored.clone();
                for (name, value) in changes.as_object().unwrap() {
                    expected[name] = value.clone();
                }
                assert_eq!(merged, expected);
            }
            (Err(error), Err(path)) => assert_eq!(error.data.path.as_deref(), Some(path)),
            (merged, _) => panic!("{merged:?}"),
        }
    }

    #[test]
    fn blanks_and_masks_keep_what_is_stored() {
        check(
            json!({"env": {"API_KEY": "", "MODE": "n"}}),
            &["/env/OLD"],
            Ok(json!({"env": {"API_KEY": "k-1", "MODE": "n"}})),
        );
        check(json!({"env": {"API_KEY": MASK}}), &[], Ok(json!({})));
        check(
            json!({"args": ["--token", MASK, "b"]}),
            &[],
            Ok(json!({"args": ["--token", "t-1", "b"]})),
        );
        check(json!({"args": ["a", "--token", MASK]}), &[], Err("/set/args/2"));
        check(json!({"env": {"MODE": MASK}}), &[], Err("/set/env/MODE"));
        check(
            json!({"env": {"API_KEY": ""}}),
            &["/env/API_KEY"],
            Ok(json!({"env": {"MODE": "m", "OLD": "o", "API_KEY": ""}})),
        );
        check(json!({}), &["/args/0"], Err("/unset"));
        check(json!({}), &["nonsense"], Err("/unset"));
    }
}
