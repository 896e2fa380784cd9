//! A union at the top of a schema, which no service takes, as one object.

use serde_json::{Map, Value, json};

/// Properties of every branch together; required is what every branch requires; the groups go into the description.
pub(super) fn merge_union(out: &mut Map<String, Value>, branches: &[Value]) {
    let mut properties = match out.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut groups = Vec::new();
    let mut common: Option<Vec<Value>> = None;
    for branch in branches {
        for (name, property) in branch["properties"].as_object().into_iter().flatten() {
            match properties.get_mut(name) {
                None => {
                    properties.insert(name.clone(), property.clone());
                }
                Some(known) if known == property => {}
                Some(known) => {
                    let known_branches = match known.get("anyOf").and_then(Value::as_array) {
                        Some(known) => known.clone(),
                        None => vec![known.clone()],
                    };
                    let mut union = known_branches;
                    if !union.contains(property) {
                        union.push(property.clone());
                    }
                    *known = json!({ "anyOf": union });
                }
            }
        }
        let required = branch["required"].as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        if !names.is_empty() {
            groups.push(format!("{{{}}}", names.join(", ")));
        }
        common = Some(match common {
            None => required.clone(),
            Some(known) => known.into_iter().filter(|name| required.contains(name)).collect(),
        });
    }
    if !properties.is_empty() {
        out.insert("properties".to_owned(), Value::Object(properties));
    }
    let mut required = out
        .remove("required")
        .and_then(|required| required.as_array().cloned())
        .unwrap_or_default();
    for name in common.unwrap_or_default() {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    if !required.is_empty() {
        out.insert("required".to_owned(), Value::Array(required));
    }
    groups.dedup();
    if groups.len() > 1 {
        let text = format!("Give one of these groups: {}.", groups.join(" or "));
        let description = match out.get("description").and_then(Value::as_str) {
            Some(known) => format!("{known} {text}"),
            None => text,
        };
        out.insert("description".to_owned(), json!(description));
    }
}
