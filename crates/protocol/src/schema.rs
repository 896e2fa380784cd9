//! The JSON Schema (draft 2020-12) of everything on the wire, made from the types and the method table.
//!
//! Params are described as they are read: closed, an optional member may be `null`.
//! Results and notifications are described as they are written: open, an optional member is absent or there.
//! Where a type stands on both sides and differs, the written one is called `<Name>Shown`.
//! Names come from `title`: each object has one, none twice, so that generators of clients need not invent any.

use std::collections::{BTreeMap, BTreeSet};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::{
    CancelRequest, DidChangeWorkspaceFolders, HostNotification, Initialize, Initialized, LogMessage,
    LspMethod, McpChanged, McpHostLayers, McpHostMessage, McpHostSend, McpLog, McpQuestionClosed,
    McpResourceUpdated, McpSample, Method, NotificationName, PROTOCOL_VERSION, Progress, Question,
    RestAccepted, RestAdd, RestConfig, RestError, RestPatch, RestServers, ShowDocument, ShowDocumentResult,
};

/// The draft that every schema here is written in.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Definitions by name.
pub(crate) type Definitions = BTreeMap<String, Value>;

/// The whole protocol as one schema: its root lists methods, notifications and requests to the host,
/// `$defs` holds every type.
pub fn bundle() -> Value {
    let described = Described::new();
    let mut definitions = described.definitions.clone();
    definitions.insert(
        "Methods".into(),
        listing("Methods", "What a host can ask.", method_rows(&described)),
    );
    definitions.insert(
        "Notifications".into(),
        listing(
            "Notifications",
            "What Pillion sends of its own accord.",
            notification_rows(),
        ),
    );
    definitions.insert(
        "HostNotifications".into(),
        listing(
            "HostNotifications",
            "What a host sends and gets no answer to, beyond the notifications of LSP.",
            HostNotification::ALL
                .iter()
                .map(|name| (name.as_str().to_owned(), reference(host_params(*name))))
                .collect(),
        ),
    );
    definitions.insert(
        "HostRequests".into(),
        listing(
            "HostRequests",
            "What Pillion asks a host that declared it; ids from 1000001 up.",
            vec![(
                "window/showDocument".into(),
                exchange(
                    "ShowDocumentRequest",
                    "ShowDocument",
                    "ShowDocumentResult",
                    "Asks the host to open a page.",
                ),
            )],
        ),
    );
    let members = ["Methods", "Notifications", "HostNotifications", "HostRequests"];
    let names = ["methods", "notifications", "hostNotifications", "hostRequests"];
    let properties: Map<String, Value> = names
        .iter()
        .zip(members)
        .map(|(name, of)| ((*name).into(), reference(of)))
        .collect();
    json!({
        "$schema": DIALECT,
        "title": "Protocol",
        "description": "Everything that passes between a host and Pillion. Params are closed; results, notifications and error data are open: ignore members you do not know. A member without `x-since` is there from 1.0 on.",
        "x-protocol-version": PROTOCOL_VERSION,
        "type": "object",
        "properties": properties,
        "required": names,
        "$defs": definitions,
    })
}

/// The schema of a method's params, standing on its own: what a request is checked against.
pub fn params_schema(method: Method) -> Value {
    standing_alone(
        read(|generator| method.add_params(generator)),
        method.params_type(),
    )
}

/// The schema of one type as it is read, standing on its own.
pub fn standalone<T: JsonSchema>() -> Value {
    standing_alone(
        read(|generator| drop(generator.subschema_for::<T>())),
        &T::schema_name(),
    )
}

/// The members of a method's params that belong to an MCP server and pass verbatim.
pub fn raw_members(method: Method) -> Vec<String> {
    let definitions = read(|generator| method.add_params(generator));
    let Some(properties) = definitions[method.params_type()]["properties"].as_object() else {
        return Vec::new();
    };
    let raw = |schema: &Value| {
        let mut names = BTreeSet::new();
        references(schema, &mut names);
        names.iter().any(|name| name == "Raw" || name == "Json")
    };
    properties
        .iter()
        .filter(|(_, schema)| raw(schema))
        .map(|(name, _)| name.clone())
        .collect()
}

/// The generated files: path relative to the repository, and content.
pub fn generated_files() -> Vec<(String, String)> {
    let described = Described::new();
    let mut files = vec![
        ("schema/pillion.schema.json".to_owned(), pretty(&bundle())),
        (
            "schema/openrpc.json".to_owned(),
            pretty(&crate::openrpc::document()),
        ),
        (
            "schema/openapi.json".to_owned(),
            pretty(&crate::openapi::document()),
        ),
        ("docs/fields.md".to_owned(), crate::fields::page()),
    ];
    for method in Method::ALL {
        files.push((
            format!("schema/methods/{method}.json"),
            pretty(&method_file(*method, &described)),
        ));
    }
    files
}

/// Every definition, and what the types of results are called in it.
pub(crate) struct Described {
    /// The definitions of params, results, notifications and errors.
    pub definitions: Definitions,
    /// Types that are called otherwise where they are written.
    shown: BTreeSet<String>,
}

impl Described {
    pub fn new() -> Self {
        let mut definitions = read(|generator| {
            Method::ALL.iter().for_each(|method| method.add_params(generator));
            generator.subschema_for::<Initialize>();
            generator.subschema_for::<CancelRequest>();
            generator.subschema_for::<DidChangeWorkspaceFolders>();
            generator.subschema_for::<ShowDocumentResult>();
            generator.subschema_for::<McpHostMessage>();
            generator.subschema_for::<McpHostLayers>();
        });
        let mut written = written(|generator| {
            Method::ALL.iter().for_each(|method| method.add_result(generator));
            generator.subschema_for::<Initialized>();
            generator.subschema_for::<McpChanged>();
            generator.subschema_for::<Question>();
            generator.subschema_for::<McpQuestionClosed>();
            generator.subschema_for::<McpSample>();
            generator.subschema_for::<McpResourceUpdated>();
            generator.subschema_for::<McpLog>();
            generator.subschema_for::<McpHostSend>();
            generator.subschema_for::<Progress>();
            generator.subschema_for::<LogMessage>();
            generator.subschema_for::<ShowDocument>();
            generator.subschema_for::<crate::error::ErrorObject>();
        });
        let shown = differing(&definitions, &written);
        for (name, mut schema) in std::mem::take(&mut written) {
            rename(&mut schema, &shown);
            if shown.contains(&name) {
                let name = shown_name(&name);
                schema["title"] = json!(name);
                definitions.insert(name, schema);
            } else {
                definitions.insert(name, schema);
            }
        }
        definitions
            .values_mut()
            .for_each(|schema| each_schema(schema, &set_apart));
        Self { definitions, shown }
    }

    /// The definition of the type of that name where it is written.
    pub fn result_name(&self, name: &str) -> String {
        if self.shown.contains(name) {
            shown_name(name)
        } else {
            name.to_owned()
        }
    }
}

/// The type of the params of a notification.
pub(crate) fn notification_params(name: NotificationName) -> &'static str {
    match name {
        NotificationName::Changed => "McpChanged",
        NotificationName::Question => "Question",
        NotificationName::QuestionClosed => "McpQuestionClosed",
        NotificationName::Sample => "McpSample",
        NotificationName::ResourceUpdated => "McpResourceUpdated",
        NotificationName::Log => "McpLog",
        NotificationName::HostSend => "McpHostSend",
        NotificationName::Progress => "Progress",
        NotificationName::LogMessage => "LogMessage",
    }
}

/// The definitions of the plain HTTP routes: bodies as they are read, answers as they are written.
pub(crate) fn rest_definitions() -> Definitions {
    let mut definitions = read(|generator| {
        generator.subschema_for::<RestAdd>();
        generator.subschema_for::<RestPatch>();
    });
    let answers = written(|generator| {
        generator.subschema_for::<RestServers>();
        generator.subschema_for::<RestAccepted>();
        generator.subschema_for::<RestConfig>();
        generator.subschema_for::<RestError>();
    });
    let shown = differing(&definitions, &answers);
    for (name, mut schema) in answers {
        rename(&mut schema, &shown);
        let name = if shown.contains(&name) {
            shown_name(&name)
        } else {
            name
        };
        schema["title"] = json!(name);
        definitions.insert(name, schema);
    }
    definitions
        .values_mut()
        .for_each(|schema| each_schema(schema, &set_apart));
    definitions
}

/// The type of the params of a notification that a host sends.
pub(crate) fn host_params(name: HostNotification) -> &'static str {
    match name {
        HostNotification::Message => "McpHostMessage",
        HostNotification::Layers => "McpHostLayers",
    }
}

/// The type of the params of a message of LSP that hosts send; `None` where it has no members.
pub(crate) fn lsp_params(method: LspMethod) -> Option<&'static str> {
    match method {
        LspMethod::Initialize => Some("Initialize"),
        LspMethod::Initialized | LspMethod::Shutdown | LspMethod::Exit => None,
        LspMethod::CancelRequest => Some("CancelRequest"),
        LspMethod::DidChangeWorkspaceFolders => Some("DidChangeWorkspaceFolders"),
    }
}

/// What a method's row says beyond its types.
pub(crate) fn annotations(method: Method) -> Map<String, Value> {
    let mut said = Map::new();
    said.insert("x-direction".into(), json!("host-to-pillion"));
    said.insert("x-tier".into(), json!(method.tier().as_str()));
    said.insert("x-gated".into(), json!(method.gated()));
    said.insert("x-since".into(), json!("1.0"));
    said.insert("x-available".into(), json!(method.available()));
    said
}

fn method_file(method: Method, described: &Described) -> Value {
    let result = described.result_name(method.result_type());
    let mut file = Map::new();
    file.insert("$schema".into(), json!(DIALECT));
    file.insert("title".into(), json!(method.name()));
    file.insert("description".into(), json!(method.doc()));
    file.extend(annotations(method));
    file.insert(
        "x-errors".into(),
        method.errors().iter().map(|kind| json!(kind.as_str())).collect(),
    );
    file.insert("type".into(), json!("object"));
    file.insert(
        "properties".into(),
        json!({ "params": reference(method.params_type()), "result": reference(&result) }),
    );
    file.insert("required".into(), json!(["params", "result"]));
    file.insert(
        "$defs".into(),
        json!(reachable(
            &described.definitions,
            &[method.params_type(), &result]
        )),
    );
    Value::Object(file)
}

fn method_rows(described: &Described) -> Vec<(String, Value)> {
    let row = |method: &Method| {
        let result = described.result_name(method.result_type());
        let mut row = exchange(
            &format!("{method:?}Request"),
            method.params_type(),
            &result,
            method.doc(),
        );
        if let Value::Object(row) = &mut row {
            row.extend(annotations(*method));
        }
        (method.name().to_owned(), row)
    };
    Method::ALL.iter().map(row).collect()
}

fn notification_rows() -> Vec<(String, Value)> {
    NotificationName::ALL
        .iter()
        .map(|name| (name.as_str().to_owned(), reference(notification_params(*name))))
        .collect()
}

fn exchange(title: &str, params: &str, result: &str, description: &str) -> Value {
    json!({
        "title": title,
        "description": description,
        "type": "object",
        "properties": { "params": reference(params), "result": reference(result) },
        "required": ["params", "result"],
    })
}

fn listing(title: &str, description: &str, rows: Vec<(String, Value)>) -> Value {
    let required: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
    let properties: Map<String, Value> = rows.into_iter().collect();
    json!({ "title": title, "description": description, "type": "object", "properties": properties, "required": required })
}

/// The definitions of what is read.
fn read(add: impl FnOnce(&mut SchemaGenerator)) -> Definitions {
    collect(SchemaSettings::draft2020_12().for_deserialize(), add, &tidy)
}

/// The definitions of what is written.
fn written(add: impl FnOnce(&mut SchemaGenerator)) -> Definitions {
    let open = |schema: &mut Map<String, Value>| {
        tidy(schema);
        if schema.get("additionalProperties") == Some(&json!(false)) {
            schema.shift_remove("additionalProperties");
        }
        drop_nulls(schema);
    };
    collect(SchemaSettings::draft2020_12().for_serialize(), add, &open)
}

fn collect(
    settings: SchemaSettings,
    add: impl FnOnce(&mut SchemaGenerator),
    polish: &dyn Fn(&mut Map<String, Value>),
) -> Definitions {
    let mut generator = settings.into_generator();
    add(&mut generator);
    let definitions = generator.take_definitions(false);
    definitions
        .into_iter()
        .map(|(name, mut schema)| {
            each_schema(&mut schema, polish);
            let schema = titled(schema, &name);
            (name, schema)
        })
        .collect()
}

/// Gives a definition its name as title.
fn titled(schema: Value, name: &str) -> Value {
    let mut titled = Map::new();
    titled.insert("title".into(), json!(name));
    if let Value::Object(rest) = schema {
        titled.extend(rest);
    }
    Value::Object(titled)
}

/// Applies a change to a schema and all schemas in it.
fn each_schema(schema: &mut Value, change: &dyn Fn(&mut Map<String, Value>)) {
    let Value::Object(object) = schema else { return };
    change(object);
    for (keyword, value) in object.iter_mut() {
        match keyword.as_str() {
            "properties" | "$defs" => {
                for member in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                    each_schema(member, change);
                }
            }
            "anyOf" | "oneOf" | "allOf" => {
                value
                    .as_array_mut()
                    .into_iter()
                    .flatten()
                    .for_each(|branch| each_schema(branch, change));
            }
            "items" | "additionalProperties" | "not" => each_schema(value, change),
            _ => {}
        }
    }
}

/// Puts the description first, where a reader looks for it, and takes out the formats that name Rust's number types.
fn tidy(schema: &mut Map<String, Value>) {
    if let Some(description) = schema.shift_remove("description") {
        schema.shift_insert(0, "description".into(), description);
    }
    let of_rust =
        |format: &str| format.starts_with("uint") || format.starts_with("int") || format == "double";
    if schema.get("format").and_then(Value::as_str).is_some_and(of_rust) {
        schema.shift_remove("format");
        // A type's own upper bound says nothing to people.
        if schema
            .get("maximum")
            .is_some_and(|bound| bound == u64::from(u16::MAX))
        {
            schema.shift_remove("maximum");
        }
    }
}

/// Sets a reference apart from the description beside it.
///
/// Draft 2020-12 allows both side by side, and what requests are checked against has it so;
/// generators, though, take that for a new type and number it (`Dir1`, `Dir2` …).
fn set_apart(schema: &mut Map<String, Value>) {
    if schema.len() > 1
        && let Some(reference) = schema.shift_remove("$ref")
    {
        schema.insert("allOf".into(), json!([{ "$ref": reference }]));
    }
}

/// What is written leaves absent members out, so `null` is no value of an optional one.
fn drop_nulls(schema: &mut Map<String, Value>) {
    let required: Vec<Value> = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, member) in properties {
        if required.iter().any(|required| required == name) {
            continue;
        }
        let Value::Object(member) = member else { continue };
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|word| word != "null");
            if let [word] = types.as_slice() {
                let word = word.clone();
                member.insert("type".into(), word);
            }
        }
        if let Some(Value::Array(branches)) = member.get_mut("anyOf") {
            branches.retain(|branch| branch != &json!({ "type": "null" }));
            if let [Value::Object(only)] = branches.as_slice() {
                let only = only.clone();
                member.shift_remove("anyOf");
                member.extend(only);
            }
        }
    }
}

/// The types that stand on both sides and differ, or hold one that does.
fn differing(read: &Definitions, written: &Definitions) -> BTreeSet<String> {
    let both = || written.iter().filter(|(name, _)| read.contains_key(*name));
    let mut differ: BTreeSet<String> = both()
        .filter(|(name, schema)| read[*name] != **schema)
        .map(|(name, _)| name.clone())
        .collect();
    loop {
        let before = differ.len();
        for (name, schema) in both() {
            let mut names = BTreeSet::new();
            references(schema, &mut names);
            if !names.is_disjoint(&differ) {
                differ.insert(name.clone());
            }
        }
        if differ.len() == before {
            return differ;
        }
    }
}

fn shown_name(name: &str) -> String {
    format!("{name}Shown")
}

/// Points references at the written types where these have a name of their own.
fn rename(schema: &mut Value, shown: &BTreeSet<String>) {
    each_schema(schema, &|schema| {
        let Some(name) = schema.get("$ref").and_then(referred) else {
            return;
        };
        if shown.contains(name) {
            let renamed = shown_name(name);
            schema.insert("$ref".into(), json!(format!("#/$defs/{renamed}")));
        }
    });
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn referred(reference: &Value) -> Option<&str> {
    reference.as_str()?.strip_prefix("#/$defs/")
}

/// Collects the names that a schema refers to.
fn references(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            names.extend(object.get("$ref").and_then(referred).map(str::to_owned));
            object.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

/// The definitions that the named ones need, themselves among them.
fn reachable(definitions: &Definitions, roots: &[&str]) -> Definitions {
    let mut found = Definitions::new();
    let mut wanted: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let mut names = BTreeSet::new();
        references(&definitions[&name], &mut names);
        wanted.extend(names);
        found.insert(name.clone(), definitions[&name].clone());
    }
    found
}

/// One definition as a schema of its own, the others beside it.
fn standing_alone(mut definitions: Definitions, name: &str) -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!(DIALECT));
    if let Some(Value::Object(root)) = definitions.remove(name) {
        schema.extend(root);
    }
    if !definitions.is_empty() {
        schema.insert("$defs".into(), json!(definitions));
    }
    Value::Object(schema)
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
