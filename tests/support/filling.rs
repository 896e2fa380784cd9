//! Parameters for any method, made from its published schema: what a new method takes is covered by itself.

use serde_json::{Map, Value, json};

/// A value that fits a schema: with all optional members or with none, unions and enumerations by `seed`.
/// `known` is asked first, with the name of each member: what has a meaning gets a value with that meaning.
pub fn fill(schema: &Value, full: bool, seed: usize, known: &dyn Fn(&str) -> Option<Value>) -> Value {
    Filling {
        root: schema,
        full,
        seed,
        known,
    }
    .value(schema)
}

struct Filling<'f> {
    root: &'f Value,
    full: bool,
    seed: usize,
    known: &'f dyn Fn(&str) -> Option<Value>,
}

impl Filling<'_> {
    fn value(&self, schema: &Value) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.root.pointer(reference.trim_start_matches('#'));
            return self.value(target.expect("a definition"));
        }
        if schema["x-raw"] == true {
            return json!({});
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(words) = schema["enum"].as_array() {
            return words[self.seed % words.len()].clone();
        }
        for union in ["anyOf", "oneOf", "allOf"] {
            let branches = schema[union].as_array().into_iter().flatten();
            let branches: Vec<&Value> = branches.filter(|branch| branch["type"] != "null").collect();
            if let Some(branch) = branches.get(self.seed % branches.len().max(1)) {
                return self.value(branch);
            }
        }
        let kind = schema["type"].as_str().or(schema["type"][0].as_str());
        match kind.unwrap_or_default() {
            "object" => self.object(schema),
            "array" if self.full => json!([self.value(&schema["items"])]),
            "array" => json!([]),
            "string" => {
                let length = schema["minLength"].as_u64().unwrap_or(1).max(1);
                json!("a".repeat(usize::try_from(length).expect("a short text")))
            }
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
            "boolean" => json!(self.seed.is_multiple_of(2)),
            _ => Value::Null,
        }
    }

    fn object(&self, schema: &Value) -> Value {
        let mut object = Map::new();
        let required = |name: &str| {
            let mut required = schema["required"].as_array().into_iter().flatten();
            required.any(|required| required == name)
        };
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            if self.full || required(name) {
                let value = (self.known)(name).unwrap_or_else(|| self.value(member));
                object.insert(name.clone(), value);
            }
        }
        Value::Object(object)
    }
}
