//! The types and their schema agree: examples made from the schema pass through the types unchanged,
//! and what the schema refuses the types refuse too, as far as shape goes (bounds stand in the schema only).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::schema::{bundle, generated_files, params_schema, raw_members, standalone};
use crate::*;

/// The longest union has six variants; each seed takes another one.
const SEEDS: usize = 6;

#[test]
fn every_type_passes_an_example_unchanged() {
    let bundle = bundle();
    macro_rules! check_methods {
        ($({ $name:literal, $variant:ident, $handler:ident, $params:ident, $result:ident, $($rest:tt)* })+) => { $(
            unchanged::<$params>(&bundle, stringify!($params));
            let shown = concat!(stringify!($result), "Shown");
            assert!(bundle["$defs"].get(shown).is_none(), "{shown} has no name in the method table");
            unchanged::<$result>(&bundle, stringify!($result));
        )+ };
    }
    for_each_method!(check_methods);
    unchanged::<Initialize>(&bundle, "Initialize");
    unchanged::<Initialized>(&bundle, "Initialized");
    unchanged::<CancelRequest>(&bundle, "CancelRequest");
    unchanged::<DidChangeWorkspaceFolders>(&bundle, "DidChangeWorkspaceFolders");
    unchanged::<McpChanged>(&bundle, "McpChanged");
    unchanged::<Question>(&bundle, "Question");
    unchanged::<McpQuestionClosed>(&bundle, "McpQuestionClosed");
    unchanged::<McpSample>(&bundle, "McpSample");
    unchanged::<McpResourceUpdated>(&bundle, "McpResourceUpdated");
    unchanged::<McpLog>(&bundle, "McpLog");
    unchanged::<McpHostSend>(&bundle, "McpHostSend");
    unchanged::<McpHostMessage>(&bundle, "McpHostMessage");
    unchanged::<McpHostLayers>(&bundle, "McpHostLayers");
    unchanged::<Progress>(&bundle, "Progress");
    unchanged::<LogMessage>(&bundle, "LogMessage");
    unchanged::<ShowDocument>(&bundle, "ShowDocument");
    unchanged::<ShowDocumentResult>(&bundle, "ShowDocumentResult");
    unchanged::<ErrorData>(&bundle, "ErrorData");
}

#[track_caller]
fn unchanged<T: serde::Serialize + serde::de::DeserializeOwned>(bundle: &Value, name: &str) {
    let schema = &bundle["$defs"][name];
    for seed in 0..SEEDS {
        for full in [true, false] {
            let example = example(schema, bundle, full, seed);
            // Through text, as on the wire.
            let read: T = serde_json::from_str(&example.to_string())
                .unwrap_or_else(|error| panic!("{name}: {error}: {example}"));
            let text = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), example, "{name}");
        }
    }
}

#[test]
fn schema_and_types_refuse_the_same_shapes() {
    macro_rules! check_methods {
        ($({ $name:literal, $variant:ident, $handler:ident, $params:ident, $($rest:tt)* })+) => { $(
            agree::<$params>(&params_schema(Method::$variant));
        )+ };
    }
    for_each_method!(check_methods);
    agree::<InitializationOptions>(&standalone::<InitializationOptions>());
}

/// Damages an example at every place in every way and compares the two verdicts.
#[track_caller]
fn agree<T: serde::de::DeserializeOwned>(schema: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let same = |value: &Value| {
        let read = serde_json::from_str::<T>(&value.to_string());
        let (by_schema, by_type) = (validator.is_valid(value), read.is_ok());
        assert_eq!(
            by_schema,
            by_type,
            "schema {by_schema}, type {by_type} ({:?}): {value}",
            read.err()
        );
        by_schema
    };
    for seed in 0..SEEDS {
        for full in [true, false] {
            let example = example(schema, schema, full, seed);
            assert!(same(&example), "refused: {example}");
            let mut unknown = example.clone();
            assert!(
                Damage::Unknown.apply(&mut unknown, "") && !same(&unknown),
                "accepted: {unknown}"
            );
            let mut places = Vec::new();
            places_in(&example, String::new(), &mut places);
            for place in places {
                for damage in [Damage::Null, Damage::OtherType, Damage::Unknown, Damage::Missing] {
                    let mut damaged = example.clone();
                    if damage.apply(&mut damaged, &place) {
                        same(&damaged);
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Damage {
    Null,
    OtherType,
    Unknown,
    Missing,
}

impl Damage {
    fn apply(self, whole: &mut Value, place: &str) -> bool {
        let Some(value) = whole.pointer_mut(place) else {
            return false;
        };
        match self {
            Damage::Null => *value = Value::Null,
            Damage::OtherType => {
                *value = if value.is_object() {
                    json!("wrong")
                } else {
                    json!({ "wrong": true })
                }
            }
            Damage::Unknown => {
                let Some(object) = value.as_object_mut() else {
                    return false;
                };
                object.insert("unknown".into(), json!({ "wrong": true }));
            }
            Damage::Missing => {
                let Some((parent, name)) = place.rsplit_once('/') else {
                    return false;
                };
                return whole
                    .pointer_mut(parent)
                    .and_then(Value::as_object_mut)
                    .is_some_and(|object| object.shift_remove(name).is_some());
            }
        }
        true
    }
}

/// Every place in a value; what is inside a `Raw` belongs to the server and is left alone.
fn places_in(value: &Value, place: String, places: &mut Vec<String>) {
    let is_raw = value.get("server's own").is_some();
    if !is_raw {
        places.push(place.clone());
    }
    match value {
        Value::Object(object) if !is_raw => {
            object
                .iter()
                .for_each(|(name, member)| places_in(member, format!("{place}/{name}"), places));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(idx, item)| places_in(item, format!("{place}/{idx}"), places));
        }
        _ => {}
    }
}

/// A value that fits a schema, with all optional members or with none.
fn example(schema: &Value, root: &Value, full: bool, seed: usize) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return example(
            root.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
            root,
            full,
            seed,
        );
    }
    if schema["x-raw"] == true {
        return json!({ "server's own": [1, 2.5, "x"] });
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words[seed % words.len()].clone();
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if let Some(branches) = schema[keyword].as_array() {
            let branches: Vec<&Value> = branches
                .iter()
                .filter(|branch| branch["type"] != "null")
                .collect();
            return example(branches[seed % branches.len()], root, full, seed);
        }
    }
    let kind = schema["type"]
        .as_str()
        .or_else(|| schema["type"][0].as_str())
        .unwrap_or_default();
    match kind {
        "object" => {
            let mut object = Map::new();
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                if full || required.iter().any(|required| required == name) {
                    object.insert(name.clone(), example(member, root, full, seed));
                }
            }
            if full && schema["additionalProperties"].is_object() {
                object.insert(
                    "key".into(),
                    example(&schema["additionalProperties"], root, full, seed),
                );
            }
            Value::Object(object)
        }
        "array" if full => json!([example(&schema["items"], root, full, seed)]),
        "array" => json!([]),
        "string" => json!("a".repeat(schema["minLength"].as_u64().unwrap_or(0).max(1) as usize)),
        "integer" => schema.get("minimum").cloned().unwrap_or(json!(7)),
        "number" => json!(7.5),
        "boolean" => json!(seed.is_multiple_of(2)),
        _ => panic!("no example for {schema}"),
    }
}

#[test]
fn bounds_stand_in_the_schema() {
    #[track_caller]
    fn check(method: Method, params: Value, fits: bool) {
        let validator = jsonschema::validator_for(&params_schema(method)).unwrap();
        assert_eq!(validator.is_valid(&params), fits, "{method}: {params}");
    }
    let long = "x".repeat(4097);
    let entry = |entry: Value| json!({ "directory": "/w", "name": "n", "entry": entry });

    check(Method::Status, json!({ "directory": "/w" }), true);
    check(Method::Status, json!({ "directory": "" }), false);
    check(Method::Status, json!({ "directory": long }), false);
    check(Method::Status, json!({ "directory": "ä".repeat(4096) }), true);
    check(
        Method::Status,
        json!({ "directory": "/w", "server": "x".repeat(201) }),
        false,
    );
    check(
        Method::Logs,
        json!({ "directory": "/w", "server": "s", "limit": 5001 }),
        false,
    );
    check(
        Method::Logs,
        json!({ "directory": "/w", "server": "s", "limit": 0 }),
        false,
    );
    check(
        Method::Logs,
        json!({ "directory": "/w", "server": "s", "limit": null }),
        true,
    );
    check(
        Method::Add,
        entry(json!({ "command": "npx", "args": ["-y"], "env": { "A": "" } })),
        true,
    );
    check(
        Method::Add,
        entry(json!({ "url": "https://h/mcp", "oauth": false })),
        true,
    );
    check(
        Method::Add,
        entry(json!({ "url": "https://h/mcp", "oauth": true })),
        false,
    );
    check(
        Method::Add,
        entry(json!({ "url": "https://h/mcp", "oauth": { "callbackPort": 65536 } })),
        false,
    );
    check(
        Method::Add,
        entry(json!({ "url": "https://h/mcp", "oauth": { "grant": "of_a_later_version" } })),
        true,
    );
    check(
        Method::Add,
        entry(json!({ "command": "x", "timeoutMs": 999 })),
        false,
    );
    check(
        Method::Add,
        entry(json!({ "command": "x", "args": vec!["a"; 257] })),
        false,
    );
    check(
        Method::Add,
        entry(json!({ "command": "x", "args": ["a".repeat(32_769)] })),
        false,
    );
    check(
        Method::Add,
        entry(json!({ "command": "x", "env": { "A": "a".repeat(32_769) } })),
        false,
    );
    let headers: BTreeMap<String, &str> = (0..65).map(|n| (format!("h{n}"), "v")).collect();
    check(
        Method::Add,
        entry(json!({ "url": "https://h/mcp", "headers": headers })),
        false,
    );
    for (name, fits) in [
        ("a-b_C9", true),
        ("a b", false),
        ("", false),
        ("pillion", false),
        (&"n".repeat(33), false),
    ] {
        check(
            Method::Add,
            json!({ "directory": "/w", "name": name, "entry": { "command": "x" } }),
            fits,
        );
    }
    check(
        Method::Start,
        json!({ "directory": "/w", "server": "s", "workDoneToken": 9_007_199_254_740_991_u64 }),
        true,
    );
    check(
        Method::Start,
        json!({ "directory": "/w", "server": "s", "workDoneToken": 9_007_199_254_740_992_u64 }),
        false,
    );
    check(
        Method::Start,
        json!({ "directory": "/w", "server": "s", "workDoneToken": "" }),
        false,
    );
    check(
        Method::ToolCall,
        json!({ "directory": "/w", "server": "s", "name": "t", "timeoutMs": 600_001 }),
        false,
    );
    check(
        Method::Answer,
        json!({ "question": "q", "action": "accept", "content": { "n": ["a"], "m": 1.5 } }),
        true,
    );
    check(
        Method::Answer,
        json!({ "question": "q", "action": "accept", "content": { "n": [1] } }),
        false,
    );
    check(
        Method::Answer,
        json!({ "question": "q", "action": "maybe" }),
        false,
    );
    check(Method::Questions, json!({}), true);
    check(Method::Questions, json!({ "directory": "/w" }), false);
}

#[test]
fn names_serve_every_generator() {
    let bundle = bundle();
    let mut titles = BTreeSet::new();
    let mut faults = Vec::new();
    walk(&bundle, &mut |schema| {
        if let Some(title) = schema.get("title").and_then(Value::as_str) {
            if !titles.insert(title.to_owned()) {
                faults.push(format!("title twice: {title}"));
            }
            if ["Field", "Option", "Value", "Result"].contains(&title) {
                faults.push(format!("a language has this name already: {title}"));
            }
        } else if schema.contains_key("properties") {
            faults.push(format!("no title: {schema:?}"));
        }
        if let Some(members) = schema.get("properties").and_then(Value::as_object)
            && members.contains_key("from")
        {
            faults.push(format!("a member is called `from`: {schema:?}"));
        }
    });
    for (name, definition) in bundle["$defs"].as_object().unwrap() {
        if definition["title"] != *name {
            faults.push(format!("{name} is titled {}", definition["title"]));
        }
        if definition["description"].as_str().is_none_or(str::is_empty) {
            faults.push(format!("no description: {name}"));
        }
        if definition.get("oneOf").is_some() && definition["discriminator"]["propertyName"].as_str().is_none()
        {
            faults.push(format!("no discriminator: {name}"));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

/// Visits each object that is a schema; values of keywords that hold data are visited too, which does no harm.
fn walk(value: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            for (keyword, inner) in object {
                match (keyword.as_str(), inner) {
                    ("properties" | "$defs", Value::Object(members)) => {
                        members.values().for_each(|member| walk(member, visit));
                    }
                    ("const" | "enum" | "discriminator", _) => {}
                    _ => walk(inner, visit),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

#[test]
fn params_are_closed_and_results_open() {
    let bundle = bundle();
    let mut results: Vec<&str> = NotificationName::ALL
        .iter()
        .map(|name| crate::schema::notification_params(*name))
        .collect();
    for method in Method::ALL {
        assert_eq!(
            bundle["$defs"][method.params_type()]["additionalProperties"],
            false,
            "{method}"
        );
        results.push(method.result_type());
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = results.pop() {
        if !seen.insert(name) {
            continue;
        }
        walk(&bundle["$defs"][name], &mut |schema| {
            assert_ne!(
                schema.get("additionalProperties"),
                Some(&json!(false)),
                "{name} is closed"
            );
        });
        referred(&bundle["$defs"][name], &mut results);
    }
}

/// Collects the names that a schema refers to.
fn referred<'a>(schema: &'a Value, names: &mut Vec<&'a str>) {
    match schema {
        Value::Object(object) => {
            let reference = object.get("$ref").and_then(Value::as_str);
            names.extend(reference.and_then(|reference| reference.strip_prefix("#/$defs/")));
            object.values().for_each(|inner| referred(inner, names));
        }
        Value::Array(items) => items.iter().for_each(|item| referred(item, names)),
        _ => {}
    }
}

#[test]
fn words_of_later_versions_are_kept() {
    for text in [r#""brand_new""#, r#""timed_out""#] {
        let kind: ErrorKind = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&kind).unwrap(), text);
        let issue: IssueKind = serde_json::from_str(text).unwrap();
        assert_eq!(
            (serde_json::to_string(&issue).unwrap(), issue),
            (text.to_owned(), kind.into())
        );
    }
    assert!(
        serde_json::from_str::<State>(r#""brand_new""#).is_err(),
        "closed lists are closed"
    );
}

#[test]
fn errors_carry_their_code_and_kind() {
    let error = Error::new(ErrorKind::CommandNotFound, "command not found")
        .server("fs")
        .candidates(vec!["/usr/bin".to_owned()])
        .hint("install it");
    let object = json!({
        "code": -32055,
        "message": "command not found",
        "data": { "kind": "command_not_found", "hint": "install it", "server": "fs", "candidates": ["/usr/bin"] },
    });
    assert_eq!(serde_json::to_value(&error).unwrap(), object);
    assert_eq!(serde_json::from_value::<Error>(object).unwrap(), error);
    assert!(size_of::<Error>() <= 64, "errors travel in every result");
}

#[test]
fn codes_are_grouped_as_documented() {
    #[track_caller]
    fn check(code: i32, words: &[&str]) {
        let of_code = |word: &&&str| serde_json::from_value::<ErrorKind>(json!(word)).unwrap().code() == code;
        let found: Vec<&str> = ErrorKind::WORDS.iter().filter(of_code).copied().collect();
        assert_eq!(found, words);
    }
    check(-32700, &["parse_error"]);
    check(-32600, &["invalid_request", "shutting_down"]);
    check(-32002, &["not_initialized"]);
    check(-32601, &["method_not_found", "invalid_command"]);
    check(-32602, &["invalid_params"]);
    check(-32603, &["internal"]);
    check(-32800, &["cancelled"]);
    check(-32060, &["overloaded"]);
    check(-32050, &["forbidden"]);
    check(-32051, &["target_mismatch"]);
    check(-32052, &["not_found"]);
    check(
        -32053,
        &[
            "stale_review",
            "stale_revision",
            "stale_cursor",
            "question_closed",
            "name_taken",
            "in_use",
        ],
    );
    check(
        -32054,
        &[
            "config_broken",
            "unset_variable",
            "read_only",
            "too_many_pending",
            "write_failed",
        ],
    );
    check(-32057, &["cannot_ask", "denied"]);
    check(-32058, &["mention_unresolved", "argument_missing"]);
    check(-32059, &["rate_limited", "unreachable"]);
}

#[test]
fn what_belongs_to_a_server_passes_as_its_own_bytes() {
    let arguments = r#"{"z":1,"a":1.0,"a":1e400,"s":"\ud800","big":12345678901234567890123}"#;
    let text = format!(r#"{{"directory":"/w","server":"s","name":"t","arguments":{arguments}}}"#);
    let params: McpToolCall = serde_json::from_str(&text).unwrap();
    assert_eq!(params.arguments.as_ref().map(Raw::get), Some(arguments));
    assert_eq!(serde_json::to_string(&params).unwrap(), text);

    let item = format!(r#"{{"type":"tool","server":"s","name":"t","raw":{arguments},"exposed":"s_t"}}"#);
    let read: CatalogItem = serde_json::from_str(&item).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), item);

    assert_eq!(raw_members(Method::ToolCall), ["arguments"]);
    assert_eq!(raw_members(Method::SampleAnswer), ["result"]);
    assert_eq!(raw_members(Method::Add), [""; 0]);
}

#[test]
fn secrets_do_not_show_in_debug() {
    let entry: ServerEntry = serde_json::from_value(json!({
        "command": "npx", "args": ["--key=hush"], "env": { "TOKEN": "hush" }, "headers": { "authorization": "hush" },
        "url": "https://hush@h/", "oauth": { "clientSecret": "hush" },
    }))
    .unwrap();
    let add = McpAdd {
        entry,
        ..McpAdd::default()
    };
    let raw = Raw::from(&json!({ "password": "hush" }));
    let call = McpToolCall {
        arguments: Some(raw),
        ..McpToolCall::default()
    };
    let auth = McpAuth {
        redirect: Some("hush".into()),
        ..McpAuth::default()
    };
    let shown = format!("{add:?} {call:?} {auth:?}");
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn the_table_is_one_list() {
    let names: BTreeSet<&str> = Method::ALL.iter().map(|method| method.name()).collect();
    assert_eq!(names.len(), Method::ALL.len());
    for method in Method::ALL {
        assert_eq!(Method::from_name(method.name()), Some(*method));
    }
    assert!(
        Method::Status.allows(Tier::ReadOnly)
            && !Method::Stop.allows(Tier::Full)
            && Method::Stop.allows(Tier::Local)
    );
}

#[test]
fn generated_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let stale: Vec<String> = generated_files()
        .into_iter()
        .filter(|(path, text)| std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text))
        .map(|(path, _)| path)
        .collect();
    assert!(
        stale.is_empty(),
        "stale: {stale:?}; run `cargo xtask codegen` and commit what it writes"
    );
}
