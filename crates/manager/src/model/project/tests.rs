//! Rows of schemas and what they become.

use super::*;

#[track_caller]
fn check(dialect: Dialect, schema: Value, expected: Value) -> Vec<String> {
    let projected = project(&schema, dialect).unwrap();
    assert_eq!(projected.schema, expected, "{:?}", projected.changes);
    assert!(jsonschema::meta::is_valid(&projected.schema));
    // What was projected fits: a second time changes nothing.
    let again = project(&projected.schema, dialect).unwrap();
    assert_eq!((again.schema, again.changes), (projected.schema, Vec::new()));
    projected.changes
}

#[test]
fn what_fits_stays() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "description": "x"}}, "required": ["a"]});
    for dialect in [
        Dialect::Openai,
        Dialect::Anthropic,
        Dialect::Gemini,
        Dialect::Portable,
    ] {
        assert_eq!(check(dialect, schema.clone(), schema.clone()), [] as [&str; 0]);
    }
}

#[test]
fn references_are_inlined_once() {
    let schema = json!({
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Place"}, "tree": {"$ref": "#/$defs/Tree"}, "far": {"$ref": "https://x/y"}},
        "$defs": {
            "Place": {"type": "object", "properties": {"x": {"type": "number"}}},
            "Tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
        },
    });
    let changes = check(
        Dialect::Openai,
        schema,
        json!({
            "type": "object",
            "properties": {
                "at": {"type": "object", "properties": {"x": {"type": "number"}}},
                "tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"type": "object"}}}},
                "far": {},
            },
        }),
    );
    assert_eq!(changes.len(), 4, "{changes:?}");
}

#[test]
fn unions_at_the_top_become_one_object() {
    let schema = json!({"oneOf": [
        {"type": "object", "properties": {"id": {"type": "integer"}, "dry": {"type": "boolean"}}, "required": ["id", "dry"]},
        {"type": "object", "properties": {"id": {"type": "string"}, "dry": {"type": "boolean"}, "name": {"type": "string"}}, "required": ["name", "dry"]},
    ]});
    check(
        Dialect::Anthropic,
        schema,
        json!({
            "type": "object",
            "properties": {
                "id": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "dry": {"type": "boolean"},
                "name": {"type": "string"},
            },
            "required": ["dry"],
            "description": "Give one of these groups: {id, dry} or {name, dry}.",
        }),
    );
}

#[test]
fn gemini_gets_its_subset() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "n": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            "either": {"type": ["string", "number"]},
            "mode": {"const": "fast"},
            "level": {"enum": [1, 2]},
            "when": {"type": "string", "format": "date"},
            "list": {"type": "array"},
            "x y": {"type": "string"},
        },
        "required": ["n", "gone"],
    });
    check(
        Dialect::Portable,
        schema,
        json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 0, "nullable": true},
                "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                "mode": {"enum": ["fast"], "type": "string"},
                "level": {"description": "One of: 1, 2"},
                "when": {"type": "string"},
                "list": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["n"],
        }),
    );
}

#[test]
fn references_that_multiply_are_refused() {
    let mut defs = Map::new();
    for level in 0..12 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(
            format!("d{level}"),
            json!({"type": "object", "properties": {"a": next, "b": next, "c": next}}),
        );
    }
    defs.insert("d12".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    assert!(project(&schema, Dialect::Openai).is_err());
}
