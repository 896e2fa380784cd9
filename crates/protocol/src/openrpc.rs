//! The OpenRPC document: methods, notifications and requests to the host, marked by `x-direction`.
//!
//! OpenRPC lists params one by one; `x-params` refers to the type that holds them all.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::schema::{Definitions, Described, annotations, host_params, lsp_params, notification_params};
use crate::{ErrorKind, HostNotification, LspMethod, Method, NotificationName, PROTOCOL_VERSION};

/// The OpenRPC 1.3 document.
pub fn document() -> Value {
    let described = Described::new();
    let definitions = &described.definitions;
    let mut methods: Vec<Value> = LspMethod::ALL
        .iter()
        .map(|method| lsp_method(*method, definitions))
        .collect();
    methods.extend(Method::ALL.iter().map(|method| own_method(*method, &described)));
    methods.extend(
        HostNotification::ALL
            .iter()
            .map(|name| notification(name.as_str(), host_params(*name), "host-to-pillion", definitions)),
    );
    methods.extend(NotificationName::ALL.iter().map(|name| {
        notification(
            name.as_str(),
            notification_params(*name),
            "pillion-to-host",
            definitions,
        )
    }));
    methods.push(show_document(definitions));
    let mut document = json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "Pillion",
            "version": PROTOCOL_VERSION,
            "description": "JSON-RPC 2.0 in the base protocol of LSP on stdio. Params are objects and closed; results, notifications and error data are open.",
        },
        "methods": methods,
        "components": { "schemas": definitions },
    });
    point_at_components(&mut document);
    document
}

fn own_method(method: Method, described: &Described) -> Value {
    let mut object = message(
        method.name(),
        method.doc(),
        Some(method.params_type()),
        &described.definitions,
    );
    object.insert(
        "result".into(),
        result(&described.result_name(method.result_type())),
    );
    object.insert("errors".into(), errors(method));
    object.extend(annotations(method));
    Value::Object(object)
}

fn lsp_method(method: LspMethod, definitions: &Definitions) -> Value {
    let (doc, answer) = match method {
        LspMethod::Initialize => ("Begins the conversation (LSP 3.17).", Some(result("Initialized"))),
        LspMethod::Initialized => ("Says that the host has read the answer to `initialize`.", None),
        LspMethod::Shutdown => (
            "Ends all work; answers within 250 ms.",
            Some(json!({ "name": "result", "required": true, "schema": { "type": "null" } })),
        ),
        LspMethod::Exit => ("Ends the process.", None),
        LspMethod::CancelRequest => (
            "Cancels a request, which then answers `cancelled` (-32800).",
            None,
        ),
        LspMethod::DidChangeWorkspaceFolders => ("Opens and closes directories.", None),
    };
    let mut object = message(method.as_str(), doc, lsp_params(method), definitions);
    object.extend(answer.map(|answer| ("result".to_owned(), answer)));
    direct(&mut object, "host-to-pillion");
    Value::Object(object)
}

fn notification(name: &str, params: &str, direction: &str, definitions: &Definitions) -> Value {
    let doc = definitions[params]["description"]
        .as_str()
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default();
    let mut object = message(name, doc, Some(params), definitions);
    direct(&mut object, direction);
    Value::Object(object)
}

fn show_document(definitions: &Definitions) -> Value {
    let doc = "Asks the host to open a page, after a person agreed; ids from 1000001 up.";
    let mut object = message("window/showDocument", doc, Some("ShowDocument"), definitions);
    object.insert("result".into(), result("ShowDocumentResult"));
    direct(&mut object, "pillion-to-host");
    Value::Object(object)
}

fn direct(object: &mut Map<String, Value>, direction: &str) {
    object.insert("x-direction".into(), json!(direction));
    object.insert("x-since".into(), json!("1.0"));
}

/// What requests and notifications have in common; OpenRPC takes a method without `result` for a notification.
fn message(name: &str, doc: &str, params: Option<&str>, definitions: &Definitions) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("name".into(), json!(name));
    object.insert("summary".into(), json!(doc));
    object.insert("paramStructure".into(), json!("by-name"));
    object.insert(
        "params".into(),
        params.map_or_else(|| json!([]), |params| listed(params, definitions)),
    );
    if let Some(params) = params {
        object.insert("x-params".into(), reference(params));
    }
    object
}

/// The members of a type, one by one; of a union, those of all variants.
fn listed(name: &str, definitions: &Definitions) -> Value {
    let definition = &definitions[name];
    let Some(variants) = definition["oneOf"].as_array() else {
        let required = required(definition);
        return members(definition)
            .map(|(name, schema)| descriptor(name, schema, required.contains(name.as_str())))
            .collect();
    };
    let variants: Vec<&Value> = variants
        .iter()
        .filter_map(|variant| definitions.get(variant["$ref"].as_str()?.strip_prefix("#/$defs/")?))
        .collect();
    let mut required_by_all = variants
        .first()
        .map(|variant| required(variant))
        .unwrap_or_default();
    let mut listed: Vec<(&str, Vec<&Value>)> = Vec::new();
    for variant in &variants {
        let required = required(variant);
        required_by_all.retain(|name| required.contains(name));
        for (name, schema) in members(variant) {
            match listed.iter_mut().find(|(known, _)| known == name) {
                Some((_, schemas)) if schemas.contains(&schema) => {}
                Some((_, schemas)) => schemas.push(schema),
                None => listed.push((name, vec![schema])),
            }
        }
    }
    listed
        .into_iter()
        .map(|(name, schemas)| match schemas.as_slice() {
            [schema] => descriptor(name, schema, required_by_all.contains(name)),
            schemas => descriptor(name, &json!({ "anyOf": schemas }), required_by_all.contains(name)),
        })
        .collect()
}

fn members(definition: &Value) -> impl Iterator<Item = (&String, &Value)> {
    definition["properties"].as_object().into_iter().flatten()
}

fn required(definition: &Value) -> BTreeSet<&str> {
    definition["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn descriptor(name: &str, schema: &Value, required: bool) -> Value {
    let mut descriptor = json!({ "name": name, "required": required, "schema": schema });
    if let Some(description) = schema["description"].as_str() {
        descriptor["description"] = json!(description);
    }
    descriptor
}

fn result(name: &str) -> Value {
    json!({ "name": "result", "required": true, "schema": reference(name) })
}

/// OpenRPC wants each code once, so kinds of one code share an error; `data` is the schema of what comes with it.
fn errors(method: Method) -> Value {
    let mut codes: BTreeMap<i32, Vec<&str>> = BTreeMap::new();
    for kind in ANY_METHOD.iter().chain(method.errors()) {
        codes.entry(kind.code()).or_default().push(kind.as_str());
    }
    codes
        .into_iter()
        .map(|(code, kinds)| {
            let data =
                json!({ "allOf": [reference("ErrorData")], "properties": { "kind": { "enum": kinds } } });
            json!({ "code": code, "message": kinds.join(", "), "data": data })
        })
        .collect()
}

/// What any method can answer.
const ANY_METHOD: &[ErrorKind] = &[
    ErrorKind::InvalidParams,
    ErrorKind::InvalidCommand,
    ErrorKind::Internal,
    ErrorKind::Cancelled,
    ErrorKind::Overloaded,
    ErrorKind::Forbidden,
    ErrorKind::TargetMismatch,
];

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// OpenRPC keeps definitions under `components`.
pub(crate) fn point_at_components(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(name) = reference.strip_prefix("#/$defs/")
            {
                *reference = format!("#/components/schemas/{name}");
            }
            object.values_mut().for_each(point_at_components);
        }
        Value::Array(items) => items.iter_mut().for_each(point_at_components),
        _ => {}
    }
}
