//! From a server's `requestedSchema` to the fields a host shows (MCP elicitation, revisions 2025-06-18 to 2026-07-28).

use protocol::{
    BooleanField, Choice, ChoiceField, IntegerField, MultiField, NumberField, QuestionField, TextField,
    TextFormat,
};
use serde_json::{Map, Number, Value};

use super::words;
use crate::limits;

/// Why a form is not shown to anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A field's type is none of those the specification allows.
    Unaskable(String),
    /// A field asks for a credential.
    Credential(String),
    /// The text above the fields does.
    CredentialAsked,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Unaskable(why) => write!(formatter, "the form cannot be shown: {why}"),
            Refusal::Credential(field) => {
                write!(
                    formatter,
                    "the field `{field}` looks like a credential, which no server may ask for in a form"
                )
            }
            Refusal::CredentialAsked => write!(
                formatter,
                "its message asks for a credential, which no server may ask for in a form"
            ),
        }
    }
}

/// The fields of a form with this message, in the server's order.
pub(crate) fn asked(message: &str, schema: &Value) -> Result<Vec<QuestionField>, Refusal> {
    let fields = fields(schema)?;
    // A choice or a yes holds no credential.
    let is_typed = |field: &QuestionField| {
        matches!(
            field,
            QuestionField::Text(_) | QuestionField::Integer(_) | QuestionField::Number(_)
        )
    };
    if fields.iter().any(is_typed) && words::asks_for_credential(message) {
        return Err(Refusal::CredentialAsked);
    }
    Ok(fields)
}

/// The fields of a schema, in the server's order.
pub(crate) fn fields(schema: &Value) -> Result<Vec<QuestionField>, Refusal> {
    let unaskable = |why: &str| Refusal::Unaskable(why.to_owned());
    let schema = schema
        .as_object()
        .ok_or_else(|| unaskable("`requestedSchema` is no object"))?;
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(unaskable("`requestedSchema` does not describe an object"));
    }
    let empty = Map::new();
    let properties = match schema.get("properties") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err(unaskable("`properties` is no object")),
    };
    if properties.len() > limits::FORM_FIELDS {
        return Err(Refusal::Unaskable(format!(
            "it has more than {} fields",
            limits::FORM_FIELDS
        )));
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    properties
        .iter()
        .map(|(name, property)| field(name, property, required.contains(&name.as_str())))
        .collect()
}

fn field(name: &str, property: &Value, required: bool) -> Result<QuestionField, Refusal> {
    let unaskable = |why: String| Refusal::Unaskable(format!("field `{name}` {why}"));
    if name.is_empty() || name.chars().count() > 256 {
        return Err(unaskable("has no usable name".to_owned()));
    }
    let property = property
        .as_object()
        .ok_or_else(|| unaskable("has no schema".to_owned()))?;
    let title = text(property, "title").filter(|title| !title.is_empty());
    if words::looks_like_credential(name) || title.as_deref().is_some_and(words::looks_like_credential) {
        return Err(Refusal::Credential(name.to_owned()));
    }
    let description = text(property, "description");
    let kind = property.get("type").and_then(Value::as_str);
    let is_typed = matches!(kind, Some("string" | "integer" | "number"))
        && !property.contains_key("enum")
        && !property.contains_key("oneOf");
    if is_typed && description.as_deref().is_some_and(words::asks_for_credential) {
        return Err(Refusal::Credential(name.to_owned()));
    }
    let name = name.to_owned();
    let label = title.unwrap_or_else(|| name.clone());
    let default = property.get("default").filter(|value| !value.is_null());
    match kind {
        Some("string") | None if property.contains_key("enum") || property.contains_key("oneOf") => {
            let options = options(property).map_err(unaskable)?;
            let default = default
                .and_then(Value::as_str)
                .filter(|value| is_option(&options, value))
                .map(str::to_owned);
            let typed = options.len() > limits::SHOWN_OPTIONS;
            Ok(ChoiceField {
                name,
                label,
                description,
                required,
                default,
                options,
                typed,
            }
            .into())
        }
        Some("string") => Ok(TextField {
            name,
            label,
            description,
            required,
            default: default.and_then(Value::as_str).map(str::to_owned),
            min_length: property.get("minLength").and_then(Value::as_u64),
            max_length: property.get("maxLength").and_then(Value::as_u64),
            format: text(property, "format").map(|format| text_format(&format)),
            // Servers must not ask for secrets.
            secret: None,
        }
        .into()),
        Some("number") => Ok(NumberField {
            name,
            label,
            description,
            required,
            default: default.and_then(Value::as_number).cloned(),
            minimum: number(property, "minimum"),
            maximum: number(property, "maximum"),
        }
        .into()),
        Some("integer") => Ok(IntegerField {
            name,
            label,
            description,
            required,
            default: default
                .and_then(Value::as_number)
                .filter(|number| !number.is_f64())
                .cloned(),
            minimum: number(property, "minimum"),
            maximum: number(property, "maximum"),
        }
        .into()),
        Some("boolean") => Ok(BooleanField {
            name,
            label,
            description,
            required,
            default: default.and_then(Value::as_bool),
        }
        .into()),
        Some("array") => {
            let items = property
                .get("items")
                .and_then(Value::as_object)
                .ok_or_else(|| unaskable("has no `items`".to_owned()))?;
            let options = options(items).map_err(unaskable)?;
            let default = default.and_then(Value::as_array).map(|values| {
                values
                    .iter()
                    .filter_map(Value::as_str)
                    .filter(|value| is_option(&options, value))
                    .map(str::to_owned)
                    .collect()
            });
            let typed = options.len() > limits::SHOWN_OPTIONS;
            Ok(MultiField {
                name,
                label,
                description,
                required,
                default,
                options,
                typed,
                min_items: property.get("minItems").and_then(Value::as_u64),
                max_items: property.get("maxItems").and_then(Value::as_u64),
            }
            .into())
        }
        Some(other) => Err(unaskable(format!(
            "is of type `{other}`, which no form may ask for"
        ))),
        None => Err(unaskable("has no type".to_owned())),
    }
}

/// The options of a choice: `oneOf`/`anyOf` of constants with titles, or `enum` with the older `enumNames`.
fn options(schema: &Map<String, Value>) -> Result<Vec<Choice>, String> {
    let titled = schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))
        .and_then(Value::as_array);
    let options: Option<Vec<Choice>> = match (titled, schema.get("enum").and_then(Value::as_array)) {
        (Some(branches), _) => branches
            .iter()
            .map(|branch| {
                let value = branch.get("const")?.as_str()?.to_owned();
                let label = branch
                    .get("title")
                    .and_then(Value::as_str)
                    .unwrap_or(&value)
                    .to_owned();
                Some(Choice { value, label })
            })
            .collect(),
        (None, Some(values)) => {
            let names = schema.get("enumNames").and_then(Value::as_array);
            values
                .iter()
                .enumerate()
                .map(|(index, value)| {
                    let value = value.as_str()?.to_owned();
                    let label = names
                        .and_then(|names| names.get(index))
                        .and_then(Value::as_str)
                        .unwrap_or(&value)
                        .to_owned();
                    Some(Choice { value, label })
                })
                .collect()
        }
        (None, None) => None,
    };
    match options {
        Some(options) if options.is_empty() => Err("offers no option".to_owned()),
        Some(options) if options.len() > limits::FIELD_OPTIONS => {
            Err(format!("offers more than {} options", limits::FIELD_OPTIONS))
        }
        Some(options) => Ok(options),
        None => Err("offers options that are no plain texts".to_owned()),
    }
}

fn is_option(options: &[Choice], value: &str) -> bool {
    options.iter().any(|option| option.value == value)
}

fn text(schema: &Map<String, Value>, member: &str) -> Option<String> {
    schema.get(member).and_then(Value::as_str).map(str::to_owned)
}

fn number(schema: &Map<String, Value>, member: &str) -> Option<Number> {
    schema.get(member).and_then(Value::as_number).cloned()
}

fn text_format(name: &str) -> TextFormat {
    match name {
        "email" => TextFormat::Email,
        "uri" => TextFormat::Uri,
        "date" => TextFormat::Date,
        "date-time" => TextFormat::DateTime,
        other => TextFormat::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(name: &str, property: Value) -> Value {
        let mut properties = Map::new();
        properties.insert(name.to_owned(), property);
        json!({"type": "object", "properties": properties, "required": [name]})
    }

    #[track_caller]
    fn check(property: Value, expected: Value) {
        let fields = fields(&schema("f", property)).unwrap();
        assert_eq!(serde_json::to_value(&fields[0]).unwrap(), expected);
    }

    #[test]
    fn every_kind_of_field() {
        check(
            json!({"type": "string", "title": "T", "minLength": 1, "format": "email", "default": "a@b"}),
            json!({"type": "text", "name": "f", "label": "T", "required": true, "default": "a@b", "minLength": 1, "format": "email"}),
        );
        check(
            json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red"], "default": "x"}),
            json!({"type": "choice", "name": "f", "label": "f", "required": true, "typed": false,
                   "options": [{"value": "r", "label": "Red"}, {"value": "g", "label": "g"}]}),
        );
        check(
            json!({"type": "array", "minItems": 1, "items": {"anyOf": [{"const": "a", "title": "A!"}]}, "default": ["a", "z"]}),
            json!({"type": "multi", "name": "f", "label": "f", "required": true, "typed": false, "default": ["a"], "minItems": 1,
                   "options": [{"value": "a", "label": "A!"}]}),
        );
        check(
            json!({"type": "integer", "minimum": 0, "default": 7}),
            json!({"type": "integer", "name": "f", "label": "f", "required": true, "minimum": 0, "default": 7}),
        );
        check(
            json!({"type": "boolean"}),
            json!({"type": "boolean", "name": "f", "label": "f", "required": true}),
        );
    }

    #[test]
    fn what_cannot_or_must_not_be_asked() {
        assert!(matches!(
            fields(&schema("a", json!({"type": "object", "properties": {}}))),
            Err(Refusal::Unaskable(_))
        ));
        assert!(matches!(
            fields(&schema("a", json!({"$ref": "#/x"}))),
            Err(Refusal::Unaskable(_))
        ));
        assert!(matches!(
            fields(&schema(
                "a",
                json!({"type": "array", "items": {"type": "object"}})
            )),
            Err(Refusal::Unaskable(_))
        ));
        assert!(matches!(
            fields(&schema("api_key", json!({"type": "string"}))),
            Err(Refusal::Credential(_))
        ));
        assert!(matches!(
            fields(&schema("a", json!({"type": "string", "title": "Password"}))),
            Err(Refusal::Credential(_))
        ));
        assert_eq!(fields(&json!({"type": "object", "properties": {}})), Ok(vec![]));
    }
}
