//! The published schema, held against every message that any test sees.
//!
//! Results and notifications are open for readers, so the schema alone would let a member through
//! that nobody declared. [`undeclared`] looks for those.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

pub fn check_result(method: &str, text: &str) -> Result<(), String> {
    match method {
        "initialize" => {
            let value = parse(text)?;
            let ours = value.pointer("/capabilities/experimental/mcp");
            check(
                "ServerCapabilitiesMcp",
                ours.ok_or("initialize says nothing of its own")?,
            )
        }
        "shutdown" => {
            if text == "null" {
                Ok(())
            } else {
                Err("shutdown answers null".to_owned())
            }
        }
        method => match protocol::Method::from_name(method) {
            Some(method) => check_text(method.result_type(), text),
            None => Err("a result for a method that does not exist".to_owned()),
        },
    }
}

pub fn check_notification(method: &str, params: Option<&str>) -> Result<(), String> {
    let name = match method {
        "mcp.changed" => "McpChanged",
        "mcp.question" => "Question",
        "mcp.question.closed" => "McpQuestionClosed",
        "mcp.sample" => "McpSample",
        "mcp.resource.updated" => "McpResourceUpdated",
        "mcp.log" => "McpLog",
        "mcp.host.send" => "McpHostSend",
        "$/progress" => "Progress",
        "window/logMessage" => "LogMessage",
        other => return Err(format!("notification `{other}` is not part of the protocol")),
    };
    check_text(name, params.ok_or("a notification without parameters")?)
}

pub fn check_host_request(method: &str, params: Option<&str>) -> Result<(), String> {
    match method {
        "window/showDocument" => check_text("ShowDocument", params.ok_or("no parameters")?),
        other => Err(format!(
            "request `{other}` to the host is not part of the protocol"
        )),
    }
}

/// `error.data` is `ErrorData`, the code the one of its kind.
pub fn check_error(text: &str) -> Result<(), String> {
    let error = parse(text)?;
    if !error["code"].is_i64() || !error["message"].is_string() {
        return Err("not a JSON-RPC error".to_owned());
    }
    check("ErrorData", error.get("data").ok_or("an error without data")?)
}

/// What holds more than a `Value` can (huge numbers, lone surrogates, deep nesting) is for the tests
/// of verbatim passage, not for the schema.
fn check_text(name: &str, text: &str) -> Result<(), String> {
    match serde_json::from_str(text) {
        Ok(value) => check(name, &value),
        Err(_) => Ok(()),
    }
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// `Ok` when the value is as the type of this name in the schema, with nothing undeclared.
pub fn check(name: &str, value: &Value) -> Result<(), String> {
    static VALIDATORS: OnceLock<Mutex<HashMap<String, &'static Validator>>> = OnceLock::new();
    if definitions().get(name).is_none() {
        return Err(format!("the schema has no type `{name}`"));
    }
    let validators = VALIDATORS.get_or_init(Mutex::default);
    let validator = *validators
        .lock()
        .expect("no panic while held")
        .entry(name.to_owned())
        .or_insert_with(|| {
            let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": definitions() });
            let validator = jsonschema::validator_for(&schema);
            Box::leak(Box::new(
                validator.unwrap_or_else(|error| panic!("the schema of {name}: {error}")),
            ))
        });
    if let Some(error) = validator.iter_errors(value).next() {
        return Err(format!("not a `{name}`: {error} at `{}`", error.instance_path()));
    }
    let extra = undeclared(&json!({ "$ref": format!("#/$defs/{name}") }), value);
    if extra.is_empty() {
        Ok(())
    } else {
        Err(format!("`{name}` has undeclared members: {}", extra.join(", ")))
    }
}

fn definitions() -> &'static Value {
    static BUNDLE: OnceLock<Value> = OnceLock::new();
    &BUNDLE.get_or_init(protocol::schema::bundle)["$defs"]
}

/// Pointers of members that no branch of the schema knows.
pub fn undeclared(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(&[schema], value, "", &mut found);
    found
}

fn walk(schemas: &[&Value], value: &Value, path: &str, found: &mut Vec<String>) {
    let mut parts = Vec::new();
    schemas.iter().for_each(|schema| flatten(schema, &mut parts));
    match value {
        Value::Array(items) => {
            let inner: Vec<&Value> = parts.iter().filter_map(|part| part.get("items")).collect();
            for (index, item) in items.iter().enumerate() {
                walk(&inner, item, &format!("{path}/{index}"), found);
            }
        }
        Value::Object(members) => {
            if parts.iter().any(|part| is_open(part)) {
                return;
            }
            let mut declared: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
            for part in &parts {
                for (name, schema) in part
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                {
                    declared.entry(name).or_default().push(schema);
                }
            }
            let map: Vec<&Value> = parts
                .iter()
                .filter_map(|part| part.get("additionalProperties"))
                .collect();
            for (name, member) in members {
                let path = format!("{path}/{name}");
                match declared.get(name.as_str()) {
                    Some(schemas) => walk(schemas, member, &path, found),
                    None if map.iter().any(|schema| schema.is_object()) => walk(&map, member, &path, found),
                    None => found.push(path),
                }
            }
        }
        _ => {}
    }
}

/// A schema that takes any object: what belongs to an MCP server.
fn is_open(schema: &Value) -> bool {
    schema == &Value::Bool(true)
        || schema.get("x-raw") == Some(&Value::Bool(true))
        || schema.get("additionalProperties") == Some(&Value::Bool(true))
        || schema.as_object().is_some_and(|members| {
            ![
                "$ref",
                "type",
                "properties",
                "anyOf",
                "oneOf",
                "allOf",
                "additionalProperties",
                "enum",
                "const",
            ]
            .iter()
            .any(|key| members.contains_key(*key))
        })
}

/// The schema itself and all it refers to at the same place.
fn flatten<'a>(schema: &'a Value, parts: &mut Vec<&'a Value>) {
    parts.push(schema);
    if let Some(name) = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|text| text.strip_prefix("#/$defs/"))
        && let Some(target) = definitions().get(name)
    {
        flatten(target, parts);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .for_each(|branch| flatten(branch, parts));
    }
}
