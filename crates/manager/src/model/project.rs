//! From a tool's own schema to one that a model's service takes: references inlined, unions rewritten, what the
//! service does not know dropped. Each change is told.

mod union;

use protocol::Dialect;
use serde_json::{Map, Value, json};

/// Steps of nesting that are followed; deeper, a schema becomes "anything".
const DEPTH: usize = 24;
/// Nodes of a projected schema. References that multiply end here, and the tool is left out.
const NODES: usize = 5_000;

/// A schema that fits, and what was changed to make it fit.
#[derive(Debug, PartialEq)]
pub(crate) struct Projected {
    pub schema: Value,
    pub changes: Vec<String>,
}

/// What a service takes.
struct Rules {
    /// Keywords that stay; `None`: all but the dropped ones.
    kept: Option<&'static [&'static str]>,
    dropped: &'static [&'static str],
    /// One type per schema, `nullable` for null.
    single_types: bool,
    /// Values of `enum` are strings only.
    string_enums: bool,
    /// Values of `format` that are known.
    formats: Option<&'static [&'static str]>,
    /// Names of properties are `[A-Za-z0-9_.-]{1,64}`.
    plain_names: bool,
    /// `oneOf` is not known, `anyOf` is.
    any_of_only: bool,
}

const NEVER: &[&str] = &[
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$vocabulary",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$defs",
    "definitions",
];

const OPENAI: Rules = Rules {
    kept: None,
    dropped: &[
        "if",
        "then",
        "else",
        "not",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
        "unevaluatedItems",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
    ],
    single_types: false,
    string_enums: false,
    formats: None,
    plain_names: false,
    any_of_only: true,
};

const ANTHROPIC: Rules = Rules {
    kept: None,
    dropped: &[],
    single_types: false,
    string_enums: false,
    formats: None,
    plain_names: true,
    any_of_only: false,
};

const GEMINI: Rules = Rules {
    kept: Some(&[
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "anyOf",
        "default",
    ]),
    dropped: &[],
    single_types: true,
    string_enums: true,
    formats: Some(&["enum", "date-time", "int32", "int64", "float", "double"]),
    plain_names: false,
    any_of_only: true,
};

/// What every one of them takes.
const PORTABLE: Rules = Rules {
    plain_names: true,
    ..GEMINI
};

/// Projects an input schema. `Err` says why no service would take it.
pub(crate) fn project(schema: &Value, dialect: Dialect) -> Result<Projected, String> {
    let rules = match dialect {
        Dialect::None => {
            return Ok(Projected {
                schema: schema.clone(),
                changes: Vec::new(),
            });
        }
        Dialect::Openai => &OPENAI,
        Dialect::Anthropic => &ANTHROPIC,
        Dialect::Gemini => &GEMINI,
        Dialect::Portable => &PORTABLE,
    };
    let mut work = Work {
        root: schema,
        rules,
        changes: Vec::new(),
        following: Vec::new(),
        nodes: 0,
    };
    let mut projected = work.schema(schema, "", 0);
    work.top(&mut projected);
    if work.nodes > NODES {
        return Err(format!(
            "its schema becomes larger than {NODES} parts once references are inlined"
        ));
    }
    work.changes.dedup();
    Ok(Projected {
        schema: projected,
        changes: work.changes,
    })
}

struct Work<'a> {
    root: &'a Value,
    rules: &'static Rules,
    changes: Vec<String>,
    /// References that are being followed.
    following: Vec<String>,
    nodes: usize,
}

impl Work<'_> {
    fn note(&mut self, at: &str, what: impl std::fmt::Display) {
        let at = if at.is_empty() { "/" } else { at };
        self.changes.push(format!("at `{at}`: {what}"));
    }

    fn schema(&mut self, schema: &Value, at: &str, depth: usize) -> Value {
        self.nodes += 1;
        if self.nodes > NODES {
            return json!({});
        }
        let Some(members) = schema.as_object() else {
            // `true` and `false` are schemas, which no service takes.
            self.note(at, "became an object that allows anything");
            return json!({});
        };
        if depth > DEPTH {
            self.note(at, "what is nested deeper was left out");
            return json!({});
        }
        let (members, followed) = self.inlined(members, at);
        let mut out = Map::new();
        for (name, member) in &members {
            self.member(name, member, &members, &mut out, at, depth);
        }
        self.merge_all_of(&members, &mut out, at, depth);
        if self.rules.single_types {
            self.one_type(&mut out, at);
        }
        self.complete(&mut out, at);
        self.following.truncate(self.following.len() - followed);
        Value::Object(out)
    }

    /// The members with the target of a `$ref` laid under them.
    fn inlined(&mut self, members: &Map<String, Value>, at: &str) -> (Map<String, Value>, usize) {
        let mut members = members.clone();
        let mut followed = 0;
        while let Some(reference) = members.remove("$ref") {
            let target = reference.as_str().and_then(|text| self.target(text));
            let name = reference.as_str().unwrap_or_default().to_owned();
            if self.following.contains(&name) {
                self.note(
                    at,
                    format!("`{name}` refers to itself; the inner one became an open object"),
                );
                members.entry("type").or_insert(json!("object"));
                break;
            }
            let Some(Value::Object(target)) = target else {
                self.note(at, format!("`{name}` leads nowhere and was dropped"));
                break;
            };
            self.note(at, format!("`{name}` was inlined"));
            self.following.push(name);
            followed += 1;
            for (name, member) in target {
                members.entry(name).or_insert(member);
            }
        }
        (members, followed)
    }

    /// Only references into the schema itself are followed; nothing is fetched.
    fn target(&self, reference: &str) -> Option<Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root.pointer(pointer).cloned()
    }

    fn member(
        &mut self,
        name: &str,
        member: &Value,
        all: &Map<String, Value>,
        out: &mut Map<String, Value>,
        at: &str,
        depth: usize,
    ) {
        if is_malformed(name, member) {
            self.note(at, format!("`{name}` is malformed and was dropped"));
            return;
        }
        match name {
            "allOf" => {}
            "properties" => {
                let properties = self.properties(member, at, depth);
                out.insert(name.to_owned(), properties);
            }
            "oneOf" if self.rules.any_of_only => {
                self.note(at, "`oneOf` became `anyOf`");
                let branches = self.branches(member, &format!("{at}/oneOf"), depth);
                let mut known = out.remove("anyOf").and_then(|known| match known {
                    Value::Array(known) => Some(known),
                    _ => None,
                });
                known.get_or_insert_default().extend(branches);
                out.insert("anyOf".to_owned(), Value::Array(known.unwrap_or_default()));
            }
            "anyOf" | "oneOf" | "prefixItems" if self.keeps(name) => {
                let branches = self.branches(member, &format!("{at}/{name}"), depth);
                out.insert(name.to_owned(), Value::Array(branches));
            }
            "items" if member.is_array() => {
                // A tuple of the older drafts.
                self.note(at, "`items` with a list became one schema for every item");
                let branches = self.branches(member, &format!("{at}/items"), depth);
                let item = match branches.as_slice() {
                    [one] => one.clone(),
                    _ => json!({ "anyOf": branches }),
                };
                out.insert(name.to_owned(), item);
            }
            "items" | "contains" | "propertyNames" | "additionalItems" if self.keeps(name) => {
                let inner = self.schema(member, &format!("{at}/{name}"), depth + 1);
                out.insert(name.to_owned(), inner);
            }
            "additionalProperties" if self.keeps(name) => {
                let inner = if member.is_boolean() {
                    member.clone()
                } else {
                    self.schema(member, &format!("{at}/{name}"), depth + 1)
                };
                out.insert(name.to_owned(), inner);
            }
            "patternProperties" if self.keeps(name) => {
                let patterns = member.as_object().into_iter().flatten();
                let patterns: Map<String, Value> = patterns
                    .map(|(pattern, inner)| {
                        let inner = self.schema(inner, &format!("{at}/patternProperties"), depth + 1);
                        (pattern.clone(), inner)
                    })
                    .collect();
                out.insert(name.to_owned(), Value::Object(patterns));
            }
            "const" if self.rules.string_enums => match member {
                Value::String(_) => {
                    self.note(at, "`const` became `enum`");
                    out.insert("enum".to_owned(), json!([member]));
                    out.entry("type").or_insert(json!("string"));
                }
                _ => self.note(at, format!("`const` of {member} was dropped")),
            },
            "enum" if self.rules.string_enums => self.string_enum(member, all, out, at),
            "format" => match (self.rules.formats, member.as_str()) {
                (Some(known), Some(format)) if !known.contains(&format) => {
                    self.note(at, format!("the format `{format}` was dropped"));
                }
                _ => {
                    out.insert(name.to_owned(), member.clone());
                }
            },
            "exclusiveMinimum" | "exclusiveMaximum" if !self.keeps(name) => {
                self.bound(name, member, all, out, at)
            }
            _ if self.keeps(name) => {
                out.insert(name.to_owned(), member.clone());
            }
            // Definitions are gone with the references to them; a draft's name means nothing to a service.
            "$defs" | "definitions" | "$schema" => {}
            _ => self.note(at, format!("`{name}` was dropped")),
        }
    }

    fn keeps(&self, name: &str) -> bool {
        !NEVER.contains(&name)
            && !self.rules.dropped.contains(&name)
            && self.rules.kept.is_none_or(|kept| kept.contains(&name))
    }

    fn properties(&mut self, member: &Value, at: &str, depth: usize) -> Value {
        let mut properties = Map::new();
        for (name, property) in member.as_object().into_iter().flatten() {
            if self.rules.plain_names && !is_plain(name) {
                self.note(
                    at,
                    format!("the property `{name}` has a name that is not taken; it was dropped"),
                );
                continue;
            }
            let inner = self.schema(property, &format!("{at}/properties/{name}"), depth + 1);
            properties.insert(name.clone(), inner);
        }
        Value::Object(properties)
    }

    fn branches(&mut self, member: &Value, at: &str, depth: usize) -> Vec<Value> {
        let branches = member.as_array().into_iter().flatten().enumerate();
        branches
            .map(|(index, branch)| self.schema(branch, &format!("{at}/{index}"), depth + 1))
            .collect()
    }

    fn string_enum(
        &mut self,
        member: &Value,
        all: &Map<String, Value>,
        out: &mut Map<String, Value>,
        at: &str,
    ) {
        let values = member.as_array().cloned().unwrap_or_default();
        let strings: Vec<Value> = values.iter().filter(|value| value.is_string()).cloned().collect();
        if strings.is_empty() {
            self.note(at, "an `enum` without texts was dropped");
            let listed: Vec<String> = values.iter().map(Value::to_string).collect();
            let text = format!("One of: {}", listed.join(", "));
            let description = match all.get("description").and_then(Value::as_str) {
                Some(known) => format!("{known} ({text})"),
                None => text,
            };
            out.insert("description".to_owned(), json!(description));
            return;
        }
        if strings.len() < values.len() {
            self.note(at, "values of `enum` that are no texts were dropped");
        }
        if values.iter().any(Value::is_null) {
            out.insert("nullable".to_owned(), json!(true));
        }
        out.insert("enum".to_owned(), Value::Array(strings));
        out.entry("type").or_insert(json!("string"));
    }

    /// An exclusive bound as an inclusive one; exact for whole numbers.
    fn bound(
        &mut self,
        name: &str,
        member: &Value,
        all: &Map<String, Value>,
        out: &mut Map<String, Value>,
        at: &str,
    ) {
        let (inclusive, step) = match name {
            "exclusiveMinimum" => ("minimum", 1),
            _ => ("maximum", -1),
        };
        let value = match (member.as_i64(), all.get("type") == Some(&json!("integer"))) {
            (Some(whole), true) => json!(whole.saturating_add(step)),
            _ => member.clone(),
        };
        if value.is_number() && !out.contains_key(inclusive) {
            self.note(at, format!("`{name}` became `{inclusive}`"));
            out.insert(inclusive.to_owned(), value);
        } else {
            self.note(at, format!("`{name}` was dropped"));
        }
    }

    /// Lays the branches of `allOf` over each other.
    fn merge_all_of(
        &mut self,
        members: &Map<String, Value>,
        out: &mut Map<String, Value>,
        at: &str,
        depth: usize,
    ) {
        let Some(branches) = members.get("allOf").and_then(Value::as_array) else {
            return;
        };
        self.note(at, "`allOf` was merged");
        for (index, branch) in branches.iter().enumerate() {
            let Value::Object(branch) = self.schema(branch, &format!("{at}/allOf/{index}"), depth + 1) else {
                continue;
            };
            for (name, member) in branch {
                match (name.as_str(), out.get_mut(&name), member) {
                    ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                        for (property, schema) in more {
                            known.entry(property).or_insert(schema);
                        }
                    }
                    ("required", Some(Value::Array(known)), Value::Array(more)) => {
                        for one in more {
                            if !known.contains(&one) {
                                known.push(one);
                            }
                        }
                    }
                    (_, Some(_), _) => {}
                    (_, None, member) => {
                        out.insert(name, member);
                    }
                }
            }
        }
    }

    /// A list of types as one type, `nullable`, or a union.
    fn one_type(&mut self, out: &mut Map<String, Value>, at: &str) {
        let Some(Value::Array(types)) = out.get("type") else {
            if out.get("type") == Some(&json!("null")) {
                self.note(at, "the type `null` became `nullable`");
                out.remove("type");
                out.insert("nullable".to_owned(), json!(true));
            }
            return;
        };
        let real: Vec<Value> = types.iter().filter(|kind| *kind != "null").cloned().collect();
        if real.len() < types.len() {
            out.insert("nullable".to_owned(), json!(true));
        }
        self.note(at, "a list of types was rewritten");
        match real.as_slice() {
            [] => {
                out.remove("type");
            }
            [one] => {
                out.insert("type".to_owned(), one.clone());
            }
            _ => {
                out.remove("type");
                let branches = real.iter().map(|kind| match kind.as_str() {
                    Some("array") => {
                        json!({ "type": kind, "items": out.get("items").cloned().unwrap_or(json!({})) })
                    }
                    _ => json!({ "type": kind }),
                });
                let branches: Vec<Value> = branches.collect();
                out.remove("items");
                out.entry("anyOf").or_insert(Value::Array(branches));
            }
        }
    }

    /// What services ask for beyond the standard.
    fn complete(&mut self, out: &mut Map<String, Value>, at: &str) {
        let is_array = out.get("type") == Some(&json!("array"));
        if is_array && !out.contains_key("items") && !out.contains_key("prefixItems") {
            self.note(at, "an array without `items` got one that allows anything");
            let any = if self.rules.single_types {
                json!({ "type": "string" })
            } else {
                json!({})
            };
            out.insert("items".to_owned(), any);
        }
        let properties: Vec<String> = match out.get("properties") {
            Some(Value::Object(properties)) => properties.keys().cloned().collect(),
            _ => Vec::new(),
        };
        let is_strict = self.rules.single_types || self.rules.plain_names;
        if let Some(Value::Array(required)) = out.get_mut("required") {
            let before = required.len();
            if is_strict {
                required.retain(|name| {
                    name.as_str()
                        .is_some_and(|name| properties.iter().any(|known| known == name))
                });
            } else {
                required.retain(Value::is_string);
            }
            let is_empty = required.is_empty();
            if required.len() < before {
                self.note(at, "`required` names that are no properties were dropped");
            }
            if is_empty {
                out.remove("required");
            }
        } else if out.remove("required").is_some() {
            self.note(at, "`required` was no list and was dropped");
        }
    }

    /// The whole must be an object without a union at its top.
    fn top(&mut self, schema: &mut Value) {
        let Value::Object(out) = schema else { return };
        for name in ["anyOf", "oneOf"] {
            let Some(Value::Array(branches)) = out.remove(name) else {
                continue;
            };
            self.note(
                "",
                format!("the union `{name}` at the top was rewritten as one object"),
            );
            union::merge_union(out, &branches);
        }
        for name in ["enum", "const", "not", "nullable"] {
            if out.remove(name).is_some() {
                self.note("", format!("`{name}` at the top was dropped"));
            }
        }
        if out.get("type") != Some(&json!("object")) {
            self.note("", "the type became `object`");
            out.insert("type".to_owned(), json!("object"));
        }
        if !out.get("properties").is_some_and(Value::is_object) {
            out.insert("properties".to_owned(), json!({}));
        }
    }
}

/// A keyword whose value no draft in use allows; one of them makes a service refuse the whole request.
fn is_malformed(name: &str, member: &Value) -> bool {
    const TYPES: [&str; 7] = [
        "object", "array", "string", "number", "integer", "boolean", "null",
    ];
    let is_type = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    match name {
        "type" => match member {
            Value::Array(kinds) => kinds.is_empty() || !kinds.iter().all(is_type),
            kind => !is_type(kind),
        },
        "title" | "description" | "pattern" | "format" => !member.is_string(),
        "enum" => !member.is_array(),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => member.as_array().is_none_or(Vec::is_empty),
        "properties" | "patternProperties" => !member.is_object(),
        // `exclusiveMinimum: true` is of draft 4.
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => !member.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            !member.is_u64()
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable" => !member.is_boolean(),
        "examples" => !member.is_array(),
        _ => false,
    }
}

fn is_plain(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

#[cfg(test)]
mod tests;
