//! Parameters on their way from the host's text to what schema and serde both accept.
//!
//! Lua sends `[]` for an empty table, Emacs and pydantic send `null` for what is absent, some encoders send `1.0` for
//! a whole number. All of that is put right here, before the schema check. What belongs to an MCP server is not even
//! looked into: a tree would change its numbers and the order of its members.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// Above this a float does not tell one whole number from the next.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A member that belongs to an MCP server.
#[derive(Debug, PartialEq, Eq)]
pub struct RawMember {
    pub name: String,
    /// Always an object; else anything.
    pub object: bool,
}

/// The parameters as a tree, and the texts that are not in it.
#[derive(Debug, Default)]
pub struct Tree<'a> {
    /// An empty object stands where a raw member is.
    pub members: Value,
    pub raw: Vec<(String, &'a str)>,
    /// Something reads differently from how it was written.
    pub changed: bool,
    /// `null` or `[]` stands somewhere.
    pub empty: bool,
    /// A member that stands twice in its object.
    pub twice: Option<String>,
}

/// Reads an object of parameters.
pub fn read<'a>(text: &'a str, raw: &[RawMember]) -> serde_json::Result<Tree<'a>> {
    let mut tree = Tree::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(Top { tree: &mut tree, raw })?;
    deserializer.end()?;
    tree.members = members;
    Ok(tree)
}

impl Tree<'_> {
    /// The parameters as a text again, each raw member as it came.
    pub fn text(&self) -> String {
        let mut text = String::from("{");
        for (name, value) in self.members.as_object().into_iter().flatten() {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&Value::from(name.as_str()).to_string());
            text.push(':');
            match self.raw.iter().find(|(raw, _)| raw == name) {
                Some((_, raw)) => text.push_str(raw),
                None => text.push_str(&value.to_string()),
            }
        }
        text.push('}');
        text
    }
}

struct Top<'t, 'a> {
    tree: &'t mut Tree<'a>,
    raw: &'t [RawMember],
}

impl<'a> Visitor<'a> for Top<'_, 'a> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Value, A::Error> {
        let tree = self.tree;
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = match self.raw.iter().find(|raw| raw.name == name) {
                None => map.next_value_seed(Node(tree))?,
                Some(raw) => {
                    let text: &'a str = map.next_value::<&'a RawValue>()?.get();
                    raw_member(tree, raw, text).map_err(A::Error::custom)?
                }
            };
            insert(tree, &mut members, name, value);
        }
        Ok(Value::Object(members))
    }
}

/// What the schema check sees in the place of a raw member.
fn raw_member<'a>(tree: &mut Tree<'a>, raw: &RawMember, text: &'a str) -> serde_json::Result<Value> {
    let nothing = || Value::Object(Map::new());
    match text.as_bytes().first() {
        Some(b'{') => tree.raw.push((raw.name.clone(), text)),
        // Absent, for a member that may be.
        Some(b'n') => return Ok(Value::Null),
        Some(b'[') if raw.object && text[1..text.len() - 1].trim_ascii().is_empty() => {
            tree.changed = true;
            tree.raw.push((raw.name.clone(), "{}"));
        }
        Some(b'[') if raw.object => return Ok(Value::Array(Vec::new())),
        _ if raw.object => return serde_json::from_str(text),
        _ => tree.raw.push((raw.name.clone(), text)),
    }
    Ok(nothing())
}

fn insert(tree: &mut Tree<'_>, members: &mut Map<String, Value>, name: String, value: Value) {
    if members.contains_key(&name) {
        tree.twice.get_or_insert(name);
    } else {
        members.insert(name, value);
    }
}

/// Any value below the top.
struct Node<'t, 'a>(&'t mut Tree<'a>);

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        if value.fract() == 0.0 && value.abs() < EXACT {
            self.0.changed = true;
            return Ok(Value::from(value as i64));
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        self.0.empty = true;
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Node(self.0))? {
            items.push(item);
        }
        self.0.empty |= items.is_empty();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            let value = map.next_value_seed(Node(self.0))?;
            insert(self.0, &mut members, name.into_owned(), value);
        }
        Ok(Value::Object(members))
    }
}

/// Turns `[]` and `null` into `{}` where `schema`, a node of `root`, expects an object.
pub fn settle(root: &Value, schema: &Value, value: &mut Value, may_be_absent: bool) -> bool {
    let schema = resolve(root, schema);
    let takes_object = || takes(root, schema, "object");
    match value {
        Value::Array(items) if items.is_empty() => {
            let mistaken = takes_object() && !takes(root, schema, "array");
            if mistaken {
                *value = Value::Object(Map::new());
            }
            mistaken
        }
        Value::Null => {
            let mistaken = !may_be_absent && takes_object() && !takes(root, schema, "null");
            if mistaken {
                *value = Value::Object(Map::new());
            }
            mistaken
        }
        Value::Array(items) => {
            let Some(inner) = branches(root, schema)
                .into_iter()
                .find_map(|branch| branch.get("items"))
            else {
                return false;
            };
            items
                .iter_mut()
                .fold(false, |changed, item| settle(root, inner, item, false) | changed)
        }
        Value::Object(members) => {
            let mut changed = false;
            for (name, member) in members {
                let inner = branches(root, schema).into_iter().find_map(|branch| {
                    let own = branch
                        .get("properties")
                        .and_then(|properties| properties.get(name));
                    own.or_else(|| {
                        branch
                            .get("additionalProperties")
                            .filter(|inner| inner.is_object())
                    })
                    .map(|inner| (inner, is_required(branch, name)))
                });
                if let Some((inner, required)) = inner {
                    changed |= settle(root, inner, member, !required);
                }
            }
            changed
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|required| required.iter().any(|member| member == name))
}

/// Follows `$ref`; the schemas are ours and their references end.
pub fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    while let Some(target) = schema.get("$ref").and_then(Value::as_str)
        && let Some(found) = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
    {
        schema = found;
    }
    schema
}

/// The schema itself, or the alternatives it consists of.
pub fn branches<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let schema = resolve(root, schema);
    let alternatives = schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Value::as_array);
    match alternatives {
        None => vec![schema],
        Some(alternatives) => alternatives
            .iter()
            .flat_map(|schema| branches(root, schema))
            .collect(),
    }
}

fn takes(root: &Value, schema: &Value, kind: &str) -> bool {
    branches(root, schema)
        .into_iter()
        .any(|branch| match branch.get("type") {
            Some(Value::String(one)) => one == kind,
            Some(Value::Array(several)) => several.iter().any(|one| one == kind),
            _ => false,
        })
}
