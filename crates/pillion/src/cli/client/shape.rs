//! What a JSON Schema says of a value, as far as the types of a programming language can say it too.
//!
//! Not a validator: what has no counterpart is `Any`, and the server has the last word.

use serde_json::Value;

/// Parts of one schema. References that fork can make a small schema long.
const PARTS: usize = 2_000;
const DEPTH: usize = 16;
/// Values of an `enum`; a longer list is no help to a reader.
const LITERALS: usize = 64;
/// Whole numbers that every language holds exactly.
const SAFE: i64 = 1 << 53;

#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Any,
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    /// A text, a whole number, true, false or null.
    Literal(Value),
    List(Box<Shape>),
    Object(Object),
    Union(Vec<Shape>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    pub fields: Vec<Field>,
    /// What members that are not named hold, where there may be some.
    pub rest: Option<Box<Shape>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub description: String,
    pub required: bool,
    pub shape: Shape,
}

impl Shape {
    pub fn of(schema: &Value) -> Shape {
        let mut reader = Reader {
            root: schema,
            left: PARTS,
            open: vec!["#".to_owned()],
        };
        reader.read(schema, 0)
    }

    /// An object without members fits.
    pub fn may_be_empty(&self) -> bool {
        match self {
            Shape::Any => true,
            Shape::Object(object) => object.fields.iter().all(|field| !field.required),
            Shape::Union(branches) => branches.iter().any(Shape::may_be_empty),
            _ => false,
        }
    }
}

struct Reader<'s> {
    root: &'s Value,
    left: usize,
    /// References that are being followed: what holds itself has no end.
    open: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, schema: &Value, depth: usize) -> Shape {
        if self.left == 0 || depth > DEPTH {
            return Shape::Any;
        }
        self.left -= 1;
        if let Some(reference) = schema["$ref"].as_str() {
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            let Some(target) = target.filter(|_| !self.open.iter().any(|open| open == reference)) else {
                return Shape::Any;
            };
            self.open.push(reference.to_owned());
            let shape = self.read(target, depth + 1);
            self.open.pop();
            return shape;
        }
        if let Some(shape) = literals(schema) {
            return shape;
        }
        let is_object = schema["properties"].is_object();
        if !is_object {
            for union in [&schema["anyOf"], &schema["oneOf"]] {
                if let Some(branches) = union.as_array() {
                    return union_of(branches.iter().map(|branch| self.read(branch, depth + 1)));
                }
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return self.all_of(schema, parts, depth);
        }
        match &schema["type"] {
            Value::String(name) => self.named(name, schema, depth),
            Value::Array(names) => {
                let names = names.iter().filter_map(Value::as_str);
                union_of(names.map(|name| self.named(name, schema, depth)))
            }
            _ if is_object => self.named("object", schema, depth),
            _ => Shape::Any,
        }
    }

    fn named(&mut self, name: &str, schema: &Value, depth: usize) -> Shape {
        match name {
            "string" => Shape::Text,
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "boolean" => Shape::Boolean,
            "null" => Shape::Null,
            "array" => Shape::List(Box::new(match schema.get("items") {
                Some(items) if schema.get("prefixItems").is_none() => self.read(items, depth + 1),
                _ => Shape::Any,
            })),
            "object" => Shape::Object(self.object(schema, depth)),
            _ => Shape::Any,
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Object {
        let required = schema["required"].as_array();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let fields: Vec<Field> = properties
            .map(|(name, property)| Field {
                name: name.clone(),
                description: property["description"].as_str().unwrap_or_default().to_owned(),
                required: required.is_some_and(|names| names.iter().any(|required| required == name)),
                shape: self.read(property, depth + 1),
            })
            .collect();
        let rest = match &schema["additionalProperties"] {
            // Nearly no schema says `false`: a type that lets misspelt names pass helps nobody.
            Value::Null if !fields.is_empty() => None,
            Value::Bool(false) => None,
            Value::Null | Value::Bool(true) => Some(Box::new(Shape::Any)),
            rest => Some(Box::new(self.read(rest, depth + 1))),
        };
        Object { fields, rest }
    }

    /// Objects are joined; of anything else no type says that it is both.
    fn all_of(&mut self, schema: &Value, parts: &[Value], depth: usize) -> Shape {
        let mut whole = self.object(schema, depth);
        let is_bare = whole.fields.is_empty();
        for part in parts {
            match self.read(part, depth + 1) {
                Shape::Object(object) => {
                    for field in object.fields {
                        match whole.fields.iter_mut().find(|known| known.name == field.name) {
                            Some(known) => known.required |= field.required,
                            None => whole.fields.push(field),
                        }
                    }
                }
                only if is_bare && parts.len() == 1 => return only,
                _ => return Shape::Any,
            }
        }
        Shape::Object(whole)
    }
}

/// The listed values, if each can be written down in a type.
fn literals(schema: &Value) -> Option<Shape> {
    let is_plain = |value: &Value| match value {
        Value::String(_) | Value::Bool(_) | Value::Null => true,
        Value::Number(number) => number.as_i64().is_some_and(|number| number.abs() < SAFE),
        Value::Array(_) | Value::Object(_) => false,
    };
    if let Some(only) = schema.get("const") {
        return is_plain(only).then(|| Shape::Literal(only.clone()));
    }
    let values = schema["enum"].as_array()?;
    let fits = !values.is_empty() && values.len() <= LITERALS && values.iter().all(is_plain);
    fits.then(|| union_of(values.iter().cloned().map(Shape::Literal)))
}

fn union_of(branches: impl Iterator<Item = Shape>) -> Shape {
    let mut union: Vec<Shape> = Vec::new();
    for branch in branches {
        match branch {
            Shape::Any => return Shape::Any,
            Shape::Union(inner) => inner.into_iter().for_each(|branch| add(&mut union, branch)),
            branch => add(&mut union, branch),
        }
    }
    match union.len() {
        0 => Shape::Any,
        1 => union.remove(0),
        _ => Shape::Union(union),
    }
}

fn add(union: &mut Vec<Shape>, branch: Shape) {
    if !union.contains(&branch) {
        union.push(branch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, expected: Shape) {
        assert_eq!(Shape::of(&schema), expected, "{schema}");
    }

    #[test]
    fn schemas_become_shapes() {
        check(json!({}), Shape::Any);
        check(json!(true), Shape::Any);
        check(
            json!({ "type": ["string", "null"] }),
            Shape::Union(vec![Shape::Text, Shape::Null]),
        );
        check(
            json!({ "enum": ["a", 1] }),
            Shape::Union(vec![Shape::Literal(json!("a")), Shape::Literal(json!(1))]),
        );
        check(json!({ "type": "number", "enum": [1.5] }), Shape::Number);
        check(
            json!({ "type": "array", "items": { "$ref": "#/$defs/a" }, "$defs": { "a": { "type": "integer" } } }),
            Shape::List(Box::new(Shape::Integer)),
        );
        check(json!({ "$ref": "https://h/schema" }), Shape::Any);
        check(
            json!({ "type": "object" }),
            Shape::Object(Object {
                fields: Vec::new(),
                rest: Some(Box::new(Shape::Any)),
            }),
        );
        check(
            json!({ "allOf": [{ "properties": { "a": { "type": "string" } } }, { "properties": { "a": {} }, "required": ["a"] }] }),
            Shape::Object(Object {
                fields: vec![Field {
                    name: "a".to_owned(),
                    description: String::new(),
                    required: true,
                    shape: Shape::Text,
                }],
                rest: Some(Box::new(Shape::Any)),
            }),
        );
    }

    #[test]
    fn what_has_no_end_ends() {
        let circle = json!({ "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" } } });
        let Shape::Object(object) = Shape::of(&circle) else {
            panic!()
        };
        assert!(object.fields.iter().all(|field| field.shape == Shape::Any));
    }
}
