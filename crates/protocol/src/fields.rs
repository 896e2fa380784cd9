//! The fields of an entry as a page for people, from the same schema that entries are checked against.

use serde_json::Value;

use crate::ServerEntry;

/// `docs/fields.md`.
pub(crate) fn page() -> String {
    let schema = crate::schema::standalone::<ServerEntry>();
    let mut page = String::from(
        "# Fields of an entry\n\n\
         Generated from the schema by `cargo xtask codegen`; [configuration.md](configuration.md) explains how they work together.\n\n\
         | field | type | meaning |\n| --- | --- | --- |\n",
    );
    rows(&schema, &schema, "", &mut page);
    page
}

fn rows(root: &Value, object: &Value, prefix: &str, page: &mut String) {
    let object = resolve(root, object);
    for (name, member) in object["properties"].as_object().into_iter().flatten() {
        let target = resolve(root, member);
        let text = |value: &Value| value["description"].as_str().map(str::to_owned);
        let meaning = text(member).or_else(|| text(target)).unwrap_or_default();
        let meaning = meaning
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace('|', "\\|");
        page.push_str(&format!(
            "| `{prefix}{name}` | {} | {meaning} |\n",
            kind(root, member)
        ));
        if let Some(inner) = inner(root, member) {
            rows(root, inner, &format!("{prefix}{name}."), page);
        } else if let Some(inner) = inner(root, &resolve(root, member)["additionalProperties"]) {
            rows(root, inner, &format!("{prefix}{name}.NAME."), page);
        }
    }
}

/// What a `$ref` leads to.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let target = schema["$ref"]
        .as_str()
        .and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    target.map_or(schema, |target| resolve(root, target))
}

fn branches<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let schema = resolve(root, schema);
    for union in ["anyOf", "oneOf"] {
        if let Some(list) = schema[union].as_array() {
            return list
                .iter()
                .flat_map(|branch| branches(root, branch))
                .filter(|branch| branch["type"] != "null")
                .collect();
        }
    }
    vec![schema]
}

/// The object of named members that a field may hold.
fn inner<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    branches(root, schema)
        .into_iter()
        .find(|branch| branch["properties"].is_object())
}

fn kind(root: &Value, schema: &Value) -> String {
    let kinds: Vec<String> = branches(root, schema)
        .into_iter()
        .map(|branch| one_kind(root, branch))
        .filter(|kind| !kind.is_empty())
        .collect();
    kinds.join(" or ")
}

fn one_kind(root: &Value, schema: &Value) -> String {
    if let Some(only) = schema.get("const") {
        return format!("`{only}`");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| format!("`{word}`"))
            .collect();
        return words.join(", ");
    }
    let named = match &schema["type"] {
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null"),
        kind => kind.as_str(),
    };
    let bounds = |least: &str, most: &str, what: &str| match (schema[least].as_u64(), schema[most].as_u64()) {
        (Some(least), Some(most)) => format!(", {least} to {most}{what}"),
        (None, Some(most)) => format!(", at most {most}{what}"),
        _ => String::new(),
    };
    match named {
        Some("string") => format!("text{}", bounds("minLength", "maxLength", " characters")),
        Some("integer") => format!("number{}", bounds("minimum", "maximum", "")),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => format!("list of {}", kind(root, &schema["items"])),
        Some("object") if schema["properties"].is_object() => "object".to_owned(),
        Some("object") => format!(
            "object of {} by name",
            kind(root, &schema["additionalProperties"])
        ),
        Some(other) => other.to_owned(),
        None => String::new(),
    }
}
