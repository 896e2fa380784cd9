//! What a tool's `inputSchema` says about its parameters: enough to type a command line and to show a list.
//!
//! Not a validator. What it does not understand it lets through; the server has the last word.

use serde_json::Value;
use serde_json::value::RawValue;

/// A chain of `$ref` longer than this is a circle.
const MAX_REFS: usize = 8;

#[derive(Debug)]
pub struct Parameter {
    pub name: String,
    pub kind: String,
    pub required: bool,
    pub description: String,
}

/// The parameters in the order of the server.
pub fn parameters(schema: &Value) -> Vec<Parameter> {
    let Some(properties) = schema["properties"].as_object() else {
        return Vec::new();
    };
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
    properties
        .iter()
        .map(|(name, property)| {
            let property = resolve(schema, property);
            Parameter {
                name: name.clone(),
                kind: Kinds::of(&property).to_string(),
                required: is_required(name),
                description: property["description"].as_str().unwrap_or_default().to_owned(),
            }
        })
        .collect()
}

/// The schema of one parameter, with a local `$ref` followed.
pub fn property(schema: &Value, name: &str) -> Option<Value> {
    schema["properties"]
        .get(name)
        .map(|property| resolve(schema, property))
}

fn resolve(root: &Value, schema: &Value) -> Value {
    let mut schema = schema;
    for _ in 0..MAX_REFS {
        let Some(target) = schema["$ref"]
            .as_str()
            .and_then(|target| target.strip_prefix('#'))
        else {
            break;
        };
        let Some(found) = root.pointer(target) else { break };
        schema = found;
    }
    schema.clone()
}

/// The kinds of value a parameter takes; none known means any.
#[derive(Debug, Default)]
pub struct Kinds {
    kinds: Vec<Kind>,
    /// Allowed values, where the schema lists them.
    choices: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Null,
    Array,
    Object,
}

impl Kinds {
    pub fn of(schema: &Value) -> Kinds {
        let mut kinds = Kinds::default();
        kinds.collect(schema);
        if kinds.kinds.is_empty() {
            for choice in kinds.choices.clone() {
                kinds.add(Kind::of(&choice));
            }
        }
        kinds
    }

    fn collect(&mut self, schema: &Value) {
        match &schema["type"] {
            Value::String(name) => self.add_named(name),
            Value::Array(names) => names
                .iter()
                .filter_map(Value::as_str)
                .for_each(|name| self.add_named(name)),
            _ => {}
        }
        if let Some(choices) = schema["enum"].as_array() {
            self.choices.extend(choices.iter().cloned());
        }
        self.choices.extend(schema.get("const").cloned());
        for branches in [&schema["anyOf"], &schema["oneOf"]] {
            let branches: Vec<Kinds> = branches.as_array().into_iter().flatten().map(Kinds::of).collect();
            // Listed values bind only where every branch lists its own.
            let all_listed = branches.iter().all(|branch| !branch.choices.is_empty());
            for branch in branches {
                branch.kinds.into_iter().for_each(|kind| self.add(kind));
                if all_listed {
                    self.choices.extend(branch.choices);
                }
            }
        }
    }

    fn add_named(&mut self, name: &str) {
        match name {
            "string" => self.add(Kind::String),
            "integer" => self.add(Kind::Integer),
            "number" => self.add(Kind::Number),
            "boolean" => self.add(Kind::Boolean),
            "null" => self.add(Kind::Null),
            "array" => self.add(Kind::Array),
            "object" => self.add(Kind::Object),
            _ => {}
        }
    }

    fn add(&mut self, kind: Kind) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    /// The JSON text for what was typed; `None` if it fits none of the kinds.
    pub fn read(&self, text: &str) -> Option<String> {
        let quoted = || Value::from(text).to_string();
        let listed = self
            .choices
            .iter()
            .filter(|choice| choice.as_str() != Some(text))
            .map(Value::to_string)
            .find(|choice| choice == text);
        if listed.is_some() {
            return listed;
        }
        // A string stays a string, also where something else would fit too: `:=` is for that.
        if self.kinds.contains(&Kind::String) {
            return Some(quoted());
        }
        let json = serde_json::from_str::<&RawValue>(text.trim())
            .ok()
            .map(RawValue::get);
        if self.kinds.is_empty() {
            return Some(json.map_or_else(quoted, str::to_owned));
        }
        let json = json?;
        self.kinds
            .iter()
            .any(|kind| kind.fits(json))
            .then(|| json.to_owned())
    }

    /// Whether a value is among those the schema lists, if it lists any.
    pub fn allows(&self, json: &str) -> bool {
        if self.choices.is_empty() {
            return true;
        }
        let value: Option<Value> = serde_json::from_str(json).ok();
        value.is_some_and(|value| self.choices.contains(&value))
    }

    pub fn choices(&self) -> String {
        let choices: Vec<String> = self.choices.iter().map(Value::to_string).collect();
        choices.join(", ")
    }

    /// For the sentence "… is not …".
    pub fn expected(&self) -> String {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.expected()).collect();
        kinds.join(" or ")
    }
}

/// Short, as a list shows it: `integer`, `string|null`, `"a"|"b"`.
impl std::fmt::Display for Kinds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const MAX_CHOICES: usize = 6;
        if !self.choices.is_empty() && self.choices.len() <= MAX_CHOICES {
            let choices: Vec<String> = self.choices.iter().map(Value::to_string).collect();
            return formatter.write_str(&choices.join("|"));
        }
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        formatter.write_str(if kinds.is_empty() { "any" } else { "" })?;
        formatter.write_str(&kinds.join("|"))
    }
}

impl Kind {
    fn of(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::Null => "null",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Kind::String => "a text",
            Kind::Integer => "a whole number",
            Kind::Number => "a number",
            Kind::Boolean => "true or false",
            Kind::Null => "null",
            Kind::Array => "a JSON array",
            Kind::Object => "a JSON object",
        }
    }

    /// Judged by the JSON text, so that no number has to be read into a machine type.
    fn fits(self, json: &str) -> bool {
        let first = json.as_bytes().first().copied().unwrap_or_default();
        let is_number = first == b'-' || first.is_ascii_digit();
        match self {
            Kind::String => first == b'"',
            Kind::Integer => is_number && !json.contains(['.', 'e', 'E']),
            Kind::Number => is_number,
            Kind::Boolean => json == "true" || json == "false",
            Kind::Null => json == "null",
            Kind::Array => first == b'[',
            Kind::Object => first == b'{',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_shows_kinds_in_short() {
        let schema = json!({
            "properties": {
                "a": { "type": "integer", "description": "How many" },
                "b": { "type": ["string", "null"] },
                "c": { "enum": ["x", "y"] },
                "d": { "anyOf": [{ "type": "string" }, { "const": 3 }] },
                "e": true,
                "f": { "$ref": "#/properties/f" },
            },
            "required": ["a"],
        });
        let shown: Vec<String> = parameters(&schema)
            .iter()
            .map(|p| format!("{}{}: {}", p.name, if p.required { "" } else { "?" }, p.kind))
            .collect();
        assert_eq!(
            shown,
            [
                "a: integer",
                "b?: string|null",
                "c?: \"x\"|\"y\"",
                "d?: string|number",
                "e?: any",
                "f?: any"
            ],
        );
        assert_eq!(parameters(&schema)[0].description, "How many");
    }
}
