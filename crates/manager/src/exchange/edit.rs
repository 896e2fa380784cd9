//! Sets one server in another program's configuration and leaves the rest of its text as it is.
//!
//! Whatever the text is written in, the outcome is read again: nothing but that server may have changed.

use jsonc_parser::cst::CstRootNode;
use serde_json::{Map, Value, json};

use super::document::{Fault, fault_at};
use super::forms::{Form, Syntax};
use super::{document, entry, toml, yaml};
use crate::config::{store, syntax};

/// A server and its place.
pub(crate) struct Target<'t> {
    pub container: &'t str,
    pub is_list: bool,
    pub name: &'t str,
    pub value: &'t Value,
}

/// The text with one server set. Members of it that only the other program knows stay.
pub(crate) fn set(text: &str, form: &Form, name: &str, value: &Value) -> Result<String, Fault> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let before = whole(body, form)?;
    let value = kept(&before, form, name, value);
    let target = Target {
        container: form.container,
        is_list: form.is_list,
        name,
        value: &value,
    };
    let changed = match form.syntax {
        Syntax::Json => set_json(body, &target)?,
        Syntax::Toml => toml::set(body, &target)?,
        Syntax::Yaml => {
            let start = if body.trim().is_empty() {
                preamble(form)
            } else {
                body.to_owned()
            };
            yaml::set(&start, &target)?
        }
    };
    verify(&changed, form, before, &target)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(_) => format!("\u{feff}{changed}"),
        None => changed,
    })
}

/// The text with questions that stand for values, `${input:id}`, declared; those that are stay as they are.
pub(crate) fn declare(text: &str, inputs: &[Value]) -> Result<String, Fault> {
    let before = document::read(text)?;
    let known = before["inputs"].as_array().cloned().unwrap_or_default();
    let is_known = |input: &&Value| !known.iter().any(|known| known["id"] == input["id"]);
    let new: Vec<&Value> = inputs.iter().filter(is_known).collect();
    if new.is_empty() {
        return Ok(text.to_owned());
    }
    let root = json_root(text)?;
    let object = root.object_value_or_set();
    let list = object.array_value_or_set("inputs");
    for input in new {
        list.append(store::input(input));
    }
    Ok(root.to_string())
}

/// A document as JSON; an empty one holds nothing.
pub(crate) fn whole(text: &str, form: &Form) -> Result<Value, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    let value = match form.syntax {
        Syntax::Json => match syntax::Document::parse(text) {
            Ok(document) => {
                for path in [&[][..], &[form.container][..]] {
                    if let Some(name) = document.repeated_names(path).into_iter().next() {
                        return Err(Fault {
                            place: Some(document.place_of_name(path, &name)),
                            message: format!("`{name}` occurs twice"),
                        });
                    }
                }
                document.value()
            }
            Err(fault) => {
                return Err(Fault {
                    message: fault.message,
                    place: Some(fault.place),
                });
            }
        },
        Syntax::Toml => toml::read(text)?,
        Syntax::Yaml => yaml::read(text)?,
    };
    match value {
        Value::Object(_) => Ok(value),
        // A file of comments only.
        Value::Null => Ok(json!({})),
        _ => Err(Fault::new("it is no map of members")),
    }
}

/// The server of a name in a document.
pub(crate) fn server<'v>(whole: &'v Value, form: &Form, name: &str) -> Option<&'v Value> {
    let servers = whole.get(form.container)?;
    match servers {
        Value::Array(items) => items.iter().find(|item| item["name"] == name),
        servers => servers.get(name),
    }
}

/// What the other program alone knows of a server stays with it.
fn kept(before: &Value, form: &Form, name: &str, value: &Value) -> Value {
    let mut value = value.clone();
    if let (Some(old), Some(members)) = (server(before, form, name), value.as_object_mut()) {
        for member in entry::strangers(old, form.dialect) {
            if !members.contains_key(&member) {
                members.insert(member.clone(), old[&member].clone());
            }
        }
    }
    value
}

fn preamble(form: &Form) -> String {
    let members: Map<String, Value> = form
        .preamble
        .iter()
        .map(|(member, value)| ((*member).to_owned(), (*value).into()))
        .collect();
    if members.is_empty() {
        String::new()
    } else {
        yaml::write(&members.into())
    }
}

fn json_root(text: &str) -> Result<CstRootNode, Fault> {
    let source = if text.trim().is_empty() { "{}\n" } else { text };
    CstRootNode::parse(source, &syntax::options())
        .map_err(|error| fault_at(text, error.range().start, error.kind().to_string()))
}

fn set_json(text: &str, target: &Target<'_>) -> Result<String, Fault> {
    let root = json_root(text)?;
    let not = |what: &str| Fault::new(format!("`{}` is no {what}", target.container));
    let object = root
        .object_value_or_create()
        .ok_or_else(|| Fault::new("it is no object"))?;
    if !target.is_list {
        object
            .object_value_or_create(target.container)
            .ok_or_else(|| not("object"))?;
        store::set(&object, &[target.container, target.name], Some(target.value));
        return Ok(root.to_string());
    }
    let list = object
        .array_value_or_create(target.container)
        .ok_or_else(|| not("list"))?;
    let known = list.elements().into_iter().find(|item| {
        item.to_serde_value()
            .is_some_and(|item| item["name"] == target.name)
    });
    match known.and_then(|item| item.as_object()) {
        Some(known) => {
            for (name, value) in target.value.as_object().into_iter().flatten() {
                store::set(&known, &[name], Some(value));
            }
            for property in known.properties() {
                let name = property.decoded_name().unwrap_or_default();
                if target.value.get(&name).is_none() {
                    property.remove();
                }
            }
        }
        None => drop(list.append(store::input(target.value))),
    }
    Ok(root.to_string())
}

/// Nothing but the server may be another one than before.
fn verify(changed: &str, form: &Form, mut before: Value, target: &Target<'_>) -> Result<(), Fault> {
    let mut after = whole(changed, form)?;
    let is_there = server(&after, form, target.name) == Some(target.value);
    let rest = |whole: &mut Value| match whole.get_mut(form.container) {
        Some(Value::Array(items)) => items.retain(|item| item["name"] != target.name),
        Some(Value::Object(servers)) => drop(servers.remove(target.name)),
        _ => {}
    };
    rest(&mut before);
    rest(&mut after);
    let members = |whole: &Value| -> Map<String, Value> {
        let members = whole.as_object().cloned().unwrap_or_default();
        let is_empty = |value: &Value| {
            value.is_null()
                || value.as_object().is_some_and(Map::is_empty)
                || value.as_array().is_some_and(Vec::is_empty)
        };
        members
            .into_iter()
            .filter(|(name, value)| {
                let is_new =
                    before.get(name).is_none() && form.preamble.iter().any(|(known, _)| known == name);
                !(is_new || name == form.container && is_empty(value))
            })
            .collect()
    };
    if is_there && members(&before) == members(&after) {
        Ok(())
    } else {
        Err(Fault::new(format!(
            "`{}` cannot be set without changing something else",
            target.name
        )))
    }
}
